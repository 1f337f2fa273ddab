/* Links to other views, in the environment that is shown; where the key may not look there, only what they name. */

import type { Schemas, Scope } from '../api.js'
import { navigate, type Parameters } from '../router.js'
import { useSession } from '../session.js'
import { visible } from './plain.js'
import { Text } from './text.js'

interface GoProps {
  /** A path, whose ids are encoded. */
  readonly to: string
  readonly with?: Parameters
  readonly text: string
  readonly title?: string | undefined
  /** The key needs it to look there. */
  readonly needs?: Scope
  readonly class?: string
  readonly 'aria-current'?: 'page' | undefined
}

export function Go({ to, with: parameters, text, needs, ...rest }: GoProps) {
  const { address, may } = useSession()
  const href = address(to, parameters)
  const follow = (event: MouseEvent): void => {
    // A new window or tab is the browser's business.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    navigate(href)
  }
  // A browser takes an id that is all dots for a way up.
  if ((needs !== undefined && !may(needs)) || /\/\.\.?$/.test(to)) return <Text>{text}</Text>
  return (
    <a href={href} onClick={follow} {...rest}>
      <Text>{text}</Text>
    </a>
  )
}

type Named = { readonly id: string; readonly text?: string; readonly with?: Parameters }

const pathOf = (kind: string, id: string): string => `/${kind}/${encodeURIComponent(id)}`

export const CustomerLink = ({ id, text = id, ...rest }: Named) => (
  <Go to={pathOf('customers', id)} text={text} needs="read" {...rest} />
)

export const EventLink = ({ id, text = id }: Named) => (
  <Go to={pathOf('events', id)} text={text} needs="events" />
)

/** By the name that the product has in the config. */
export const ProductLink = ({ id }: Named) => (
  <Go to={pathOf('products', id)} text={useSession().productName(id)} needs="read" />
)

export function SourceLink({ source: { kind, id } }: { readonly source: Schemas['SourceKey'] }) {
  if (kind === 'manual') return 'grants by hand'
  return <Go to="/events" with={{ [`${kind}Id`]: id }} text={id} needs="events" />
}

/** A role or a group, by the products that give it. */
export function TargetLink({ target }: { readonly target: string }) {
  const names = useSession().productsOf(target)
  const to = { to: '/sync/memberships', with: { target }, needs: 'admin' } as const
  if (names === '') return <Go {...to} text={target} />
  return [
    <Go key={1} {...to} text={names} />,
    <small key={2} class="block text-xs break-all">
      {visible(target)}
    </small>,
  ]
}
