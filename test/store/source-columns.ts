import { compareText } from '../../src/entitlements/order.js'
import { readHistory } from '../../src/store/sources.js'

/** Of `sources`, all but their numbers: deliveries in another order have sources come to be in another order. */
export const SOURCE_COLUMNS = [
  'environment',
  'kind',
  'source_id',
  'customer_id',
  'state',
  'history',
  'newest_at',
] as const

/** The events of a history without their numbers, for the same reason. */
export function eventsIn(history: string) {
  const events = readHistory({ history }).map(({ seq: _, ...event }) => event)
  return events.sort((a, b) => compareText(a.id, b.id))
}
