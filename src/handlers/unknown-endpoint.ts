import type { EventFilter } from '../entitlements/stored-event.js'
import type { StoredEventDeps } from './stored-events.js'

/**
 * What is wrong with the endpoint of a filter that can't have been meant so: it is not configured for the environment,
 * and nothing came through it there, since events outlive the config of their endpoint. Null where it may have been, and where too many are
 * stored to be sure.
 *
 * @throws LatchkeyError `store_unavailable`
 */
export async function unknownEndpoint(
  { environment, endpoint }: Pick<EventFilter, 'environment' | 'endpoint'>,
  {
    endpointNames,
    endpointNamed,
    storedEvents,
  }: Pick<StoredEventDeps, 'endpointNames' | 'endpointNamed' | 'storedEvents'>,
): Promise<string | null> {
  // That of what was done by hand belongs to neither.
  const names = endpointNames().filter(
    (name) => (endpointNamed(name)?.environment ?? environment) === environment,
  )
  if (endpoint === null || names.includes(endpoint)) return null
  const through = {
    environment,
    endpoint,
    disposition: null,
    type: null,
    customerId: null,
    from: null,
    to: null,
  }
  const { items, next } = await storedEvents.readEventPage({ filter: through, before: null, limit: 1 })
  if (items.length > 0 || next !== null) return null
  return `is none of ${names.join(', ')}, and nothing came through it`
}
