import type { SourceKey } from '../../../src/entitlements/model.js'
import type { NormalizedEvent, PaymentEvent } from '../../../src/provider/event.js'
import { byTime } from './order.js'
import { isSourceEvent } from './rail.js'

/** Which source each event of a mixed set belongs to, by event id; null where that is not known. */
export function plainSourceKeys(events: readonly NormalizedEvent[]): Map<string, SourceKey | null> {
  return new Map(events.map((event) => [event.id, keyOf(event, events)]))
}

function keyOf(event: NormalizedEvent, events: readonly NormalizedEvent[]): SourceKey | null {
  if (!isSourceEvent(event)) return null
  const subscriptionId = event.subject === 'subscription' ? event.subscriptionId : linkOf(event, events)
  if (subscriptionId !== null) return { kind: 'subscription', id: subscriptionId }
  return event.subject === 'payment' && event.paymentId !== null
    ? { kind: 'payment', id: event.paymentId }
    : null
}

/** The subscription of the event's payment: the newest link that any event makes. */
function linkOf(
  { paymentId, subscriptionId }: PaymentEvent,
  events: readonly NormalizedEvent[],
): string | null {
  if (paymentId === null) return subscriptionId
  const links = events
    .filter(isSourceEvent)
    .filter((event) => event.paymentId === paymentId && event.subscriptionId !== null)
  return links.sort(byTime).at(-1)?.subscriptionId ?? null
}
