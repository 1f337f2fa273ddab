/* Links to what a page names, where the key may look at it; else its name. */

import { API_BASE, type Schemas } from '../api.js'
import { Link } from '../router.js'
import { useAddress, useSession } from '../session.js'
import { Badge } from './show.js'
import { Text } from './text.js'

const customerPath = (id: string): string => `/customers/${encodeURIComponent(id)}`
const eventPath = (id: string): string => `/events/${encodeURIComponent(id)}`

/** @param children what is shown instead of the id */
export function CustomerLink({ id, children = id }: { readonly id: string; readonly children?: string }) {
  const address = useAddress()
  const text = <Text>{children}</Text>
  return useSession().may('read') ? <Link to={address(customerPath(id))}>{text}</Link> : text
}

export function EventLink({ id, children = id }: { readonly id: string; readonly children?: string }) {
  const address = useAddress()
  const text = <Text>{children}</Text>
  return useSession().may('events') ? <Link to={address(eventPath(id))}>{text}</Link> : text
}

/** The address of the exact bytes of an event, for a download. */
export const bodyAddress = (id: string, query: Record<string, string>): string =>
  `${API_BASE}${eventPath(id)}/body?${new URLSearchParams(query)}`

/** Leads to the events that belong to a source. */
export function SourceLink({ source: { kind, id } }: { readonly source: Schemas['SourceKey'] }) {
  const address = useAddress()
  if (kind === 'manual') return 'grants by hand'
  const text = <Text>{id}</Text>
  const filter = { [kind === 'subscription' ? 'subscriptionId' : 'paymentId']: id }
  return useSession().may('events') ? <Link to={address('/events', filter)}>{text}</Link> : text
}

type Snapshot = Pick<Schemas['AccessSnapshot'], 'status'>

/** The status of access before and after. */
export function StatusChange({ before, after }: { readonly before: Snapshot; readonly after: Snapshot }) {
  return (
    <>
      <Badge>{before.status}</Badge> → <Badge>{after.status}</Badge>
    </>
  )
}
