import type { EventFilter } from '../entitlements/stored-event.js'
import { invalidParameter } from './query.js'
import type { StoredEventDeps } from './stored-events.js'

/**
 * Lets a filter pass that found nothing, unless it names an endpoint that is not configured, and through which nothing
 * came: events outlive the config of their endpoint. Where too many are stored to be sure of that, it passes too.
 *
 * @throws LatchkeyError `invalid_request`, `store_unavailable`
 */
export async function requireEndpoint(
  { environment, endpoint }: Pick<EventFilter, 'environment' | 'endpoint'>,
  { endpointNames, storedEvents }: Pick<StoredEventDeps, 'endpointNames' | 'storedEvents'>,
): Promise<void> {
  const names = endpointNames()
  if (endpoint === null || names.includes(endpoint)) return
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
  if (items.length === 0 && next === null) {
    throw invalidParameter('endpoint', `is none of ${names.join(', ')}, and nothing came through it`)
  }
}
