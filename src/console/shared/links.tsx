/* Links to other views, in the environment that is shown. */

import type { ComponentChildren } from 'preact'
import type { Environment } from '../api.js'
import { Link, type Parameters } from '../router.js'
import { useAddress } from '../session.js'
import { Text } from './text.js'

interface GoProps {
  /** A path, whose ids are encoded. */
  readonly to: string
  readonly with?: Parameters
  readonly title?: string
  /** A text may be from elsewhere. */
  readonly children: ComponentChildren
}

export function Go({ to, with: parameters = {}, children, ...rest }: GoProps) {
  return (
    <Link to={useAddress()(to, parameters)} {...rest}>
      {typeof children === 'string' ? <Text>{children}</Text> : children}
    </Link>
  )
}

/** @param environment if it may be another one than is shown */
export function CustomerLink({
  id,
  environment,
}: {
  readonly id: string
  readonly environment?: Environment
}) {
  return (
    <Go to={`/customers/${encodeURIComponent(id)}`} with={{ environment }}>
      {id}
    </Go>
  )
}
