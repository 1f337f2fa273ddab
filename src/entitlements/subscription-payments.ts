import type { Rail, SubscriptionEvent } from '../provider/event.js'
import { createPaymentFinder, type PayingEvent, type PaymentFinder } from './paying-events.js'
import type { Policy } from './policy.js'
import { railOfSubscription, railsOfPayments } from './rail.js'
import { type Reading, readEvents, type SourceEvent } from './reading.js'

/** All that the whole set of a subscription's events says, before any of them is walked. */
export interface SubscriptionReading {
  readonly rail: Rail
  readonly walk: readonly Reading[]
  /** Whether a payment event, at its index, makes its payment good. */
  readonly pays: ReadonlySet<number>
  /** The index of each payment's first paying event. */
  readonly firstPaid: ReadonlyMap<string, number>
  /** The payment of each cycle event, by the event's index; absent: none is found. */
  readonly cyclePayments: ReadonlyMap<number, string>
  /** Finds a plan change's charge: never a payment that paid a cycle. */
  readonly findCharge: PaymentFinder
}

export function readSubscription(events: readonly SourceEvent[], policy: Policy): SubscriptionReading {
  const payments = railsOfPayments(events)
  const rail = railOfSubscription(payments.values())
  const railOf = (event: SourceEvent): Rail =>
    event.subject === 'subscription' ? rail : (payments.get(event.paymentId ?? '')?.rail ?? 'unknown')
  const walk = readEvents(events, railOf, policy)
  const paying = payingEvents(walk, policy)
  const findPayment = createPaymentFinder(paying)
  const cyclePayments = new Map<number, string>()
  for (const { event, index } of walk) {
    const paymentId = isCycleEvent(event) ? findPayment(event) : null
    if (paymentId !== null) cyclePayments.set(index, paymentId)
  }
  const ofCycles = new Set(cyclePayments.values())
  const firstPaid = new Map<string, number>()
  for (const { paymentId, index } of paying) {
    if (!firstPaid.has(paymentId)) firstPaid.set(paymentId, index)
  }
  return {
    rail,
    walk,
    pays: new Set(walk.filter((reading) => counts(reading, policy)).map(({ index }) => index)),
    firstPaid,
    cyclePayments,
    findCharge: createPaymentFinder(paying.filter(({ paymentId }) => !ofCycles.has(paymentId))),
  }
}

/** The events that say that a cycle was paid. */
export function isCycleEvent(event: SourceEvent): event is SubscriptionEvent {
  return event.type === 'subscription.created' || event.type === 'subscription.renewed'
}

/** Whether the event pays its payment: a grant does, and where cycles count as paid, `payment.succeeded` too. */
function counts({ event, effect }: Reading, policy: Policy): boolean {
  if (event.subject !== 'payment' || event.paymentId === null) return false
  return (
    effect === 'grant' ||
    (effect === 'none' && event.type === 'payment.succeeded' && policy.paidCycle === 'grants')
  )
}

/** A payment's grants; of a payment that has none, what else pays it. */
function payingEvents(walk: readonly Reading[], policy: Policy): PayingEvent[] {
  const granted = new Set<string | null>()
  for (const { event, effect } of walk) {
    if (event.subject === 'payment' && effect === 'grant') granted.add(event.paymentId)
  }
  const paying: PayingEvent[] = []
  for (const reading of walk) {
    const { event, effect, index } = reading
    if (event.subject !== 'payment' || event.paymentId === null || !counts(reading, policy)) continue
    if (effect === 'grant' || !granted.has(event.paymentId)) {
      paying.push({ paymentId: event.paymentId, at: event.createdAt, index })
    }
  }
  return paying
}
