import type { SubscriptionEvent } from '../../../src/provider/event.js'
import { paymentsIn, type SourceEvent } from './rail.js'
import type { PlainSource } from './source.js'

/** A cycle event and the payment that paid the cycle are at most this far apart, either way. */
const PAIRING_WINDOW = 24 * 60 * 60 * 1000

type CycleEvent = SubscriptionEvent & { readonly type: 'subscription.created' | 'subscription.renewed' }

/** `subscription.created` and `.renewed` say that a cycle was paid. */
export function isCycleEvent(event: SourceEvent): event is CycleEvent {
  return event.type === 'subscription.created' || event.type === 'subscription.renewed'
}

/** The payment that paid the cycle of a `.created` or `.renewed`; null if it is not known. */
export function cyclePaymentOf(source: PlainSource, event: SubscriptionEvent): string | null {
  return paymentFor(source, event, [...paymentsIn(source.events).keys()])
}

/** The payment that paid a plan change, which is never one that paid a cycle; null if there was no charge. */
export function chargeOf(source: PlainSource, event: SubscriptionEvent): string | null {
  const cyclePayments = source.events.filter(isCycleEvent).map((cycle) => cyclePaymentOf(source, cycle))
  const others = [...paymentsIn(source.events).keys()].filter((id) => !cyclePayments.includes(id))
  return paymentFor(source, event, others)
}

/** The payment that the event names, if it was paid; else that of the nearest paying event. */
function paymentFor(source: PlainSource, event: SubscriptionEvent, among: readonly string[]): string | null {
  const named = event.paymentId
  if (named !== null && among.includes(named) && source.payingEvents(named).length > 0) return named

  let nearest: { paymentId: string; distance: number } | null = null
  for (const paying of source.events) {
    if (paying.subject !== 'payment' || paying.paymentId === null) continue
    if (!among.includes(paying.paymentId)) continue
    if (!source.payingEvents(paying.paymentId).includes(paying)) continue
    const distance = Math.abs(paying.createdAt - event.createdAt)
    if (distance > PAIRING_WINDOW) continue
    if (nearest === null || distance < nearest.distance) nearest = { paymentId: paying.paymentId, distance }
  }
  return nearest?.paymentId ?? null
}
