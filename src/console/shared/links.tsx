/* Links to other views, in the environment that is shown. */

import { Link, type Parameters } from '../router.js'
import { useAddress } from '../session.js'
import { Text } from './text.js'

interface GoProps {
  /** A path, whose ids are encoded. */
  readonly to: string
  readonly with?: Parameters
  /** May be from elsewhere. */
  readonly text: string
  readonly title?: string | undefined
}

export function Go({ to, with: parameters, text, title }: GoProps) {
  return (
    <Link to={useAddress()(to, parameters)} {...(title !== undefined && { title })}>
      <Text>{text}</Text>
    </Link>
  )
}
