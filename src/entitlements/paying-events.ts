import type { KeptSubscription } from './reading.js'

/** How far a payment may be from the event that says it was made, either way: 24 hours. */
const PAYMENT_SEARCH_MS = 24 * 60 * 60 * 1000

/** An event by which a payment paid, at its place in the walk. */
export interface PayingEvent {
  readonly paymentId: string
  readonly at: number
  readonly index: number
}

/** Finds the payment that a subscription event speaks of, among paying events in walk order; null: none. */
export type PaymentFinder = (event: KeptSubscription) => string | null

/**
 * The payment that the event names, if it paid; else the one whose paying event is nearest in time,
 * the earlier in order at equal distance.
 * @param hasPaid whether a payment is among those of `paying`
 */
export function createPaymentFinder(
  paying: readonly PayingEvent[],
  hasPaid: (paymentId: string) => boolean,
): PaymentFinder {
  return (event) => {
    if (event.paymentId !== null && hasPaid(event.paymentId)) return event.paymentId
    const nearest = nearestTo(paying, event.createdAt)
    return nearest && Math.abs(nearest.at - event.createdAt) <= PAYMENT_SEARCH_MS ? nearest.paymentId : null
  }
}

function nearestTo(paying: readonly PayingEvent[], at: number): PayingEvent | undefined {
  const next = firstNotBefore(paying, at)
  const after = paying[next]
  const lastBefore = paying[next - 1]
  if (lastBefore === undefined) return after
  if (after !== undefined && after.at - at < at - lastBefore.at) return after
  return paying[firstNotBefore(paying, lastBefore.at)]
}

/** Binary search: the position of the first entry at or after `at`. */
function firstNotBefore(paying: readonly PayingEvent[], at: number): number {
  let low = 0
  let high = paying.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((paying[middle] as PayingEvent).at < at) low = middle + 1
    else high = middle
  }
  return low
}
