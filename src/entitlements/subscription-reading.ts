import type { Rail } from '../provider/event.js'
import { chooseNamings, type NamingKind } from './naming.js'
import { createPaymentFinder, type PayingEvent, type PaymentFinder } from './paying-events.js'
import type { Policy } from './policy.js'
import { railIn, railOfSubscription, railsOfPayments } from './rail.js'
import { type KeptSubscription, type Reading, readEvents, type SourceEvent } from './reading.js'

/** All that the whole set of a subscription's events says, before any of them is walked. */
export interface SubscriptionReading {
  readonly rail: Rail
  /** The rail that an event is read under. */
  readonly railOf: (event: SourceEvent) => Rail
  readonly walk: readonly Reading[]
  /** The index of each payment's first paying event. */
  readonly firstPaid: ReadonlyMap<string, number>
  /** The payment of each cycle event, by the event's index; absent: none is found. */
  readonly cyclePayments: ReadonlyMap<number, string>
  /** Finds a plan change's charge: never a payment that paid a cycle. */
  readonly findCharge: PaymentFinder
  /** Which events count as namings of the product. */
  readonly namingKind: NamingKind | null
  /** The product before the first naming: what that one says. */
  readonly firstProduct: string | null
}

export function readSubscription(events: readonly SourceEvent[], policy: Policy): SubscriptionReading {
  const payments = railsOfPayments(events)
  const rail = railOfSubscription(payments.values())
  const railOf = (event: SourceEvent): Rail =>
    event.subject === 'subscription' ? rail : railIn(payments.get(event.paymentId ?? ''))
  const walk = readEvents(events, railOf, policy)
  const paying = payingEvents(walk, policy)
  const firstPaid = new Map<string, number>()
  for (const { paymentId, index } of paying) {
    if (!firstPaid.has(paymentId)) firstPaid.set(paymentId, index)
  }
  const hasPaid = (paymentId: string): boolean => firstPaid.has(paymentId)
  const findPayment = createPaymentFinder(paying, hasPaid)
  const cyclePayments = new Map<number, string>()
  for (const { event, index } of walk) {
    const paymentId = isCycleEvent(event) ? findPayment(event) : null
    if (paymentId !== null) cyclePayments.set(index, paymentId)
  }
  const { namingKind, firstProduct } = chooseNamings(walk)
  // Few subscriptions ever change their plan.
  let findCharge: PaymentFinder | null = null
  return {
    rail,
    railOf,
    walk,
    firstPaid,
    cyclePayments,
    findCharge: (event) => {
      findCharge ??= createChargeFinder(paying, hasPaid, cyclePayments)
      return findCharge(event)
    },
    namingKind,
    firstProduct,
  }
}

function createChargeFinder(
  paying: readonly PayingEvent[],
  hasPaid: (paymentId: string) => boolean,
  cyclePayments: ReadonlyMap<number, string>,
): PaymentFinder {
  const ofCycles = new Set(cyclePayments.values())
  const charges = paying.filter(({ paymentId }) => !ofCycles.has(paymentId))
  return createPaymentFinder(charges, (paymentId) => hasPaid(paymentId) && !ofCycles.has(paymentId))
}

/** The events that say that a cycle was paid. */
export function isCycleEvent(event: SourceEvent): event is KeptSubscription {
  return event.type === 'subscription.created' || event.type === 'subscription.renewed'
}

/** Whether the event makes its payment good: a grant does, and where cycles count as paid, success too. */
export function makesGood(reading: Reading, policy: Policy): boolean {
  return reading.effect === 'grant' || (reading.effect === 'none' && reportsSuccess(reading, policy))
}

/** Whether the event pays a payment that no grant pays. */
function reportsSuccess({ event }: Reading, { paidCycle }: Policy): boolean {
  return event.type === 'payment.succeeded' && paidCycle === 'grants'
}

/** A payment's grants; of a payment that has none at all, what reports its success. */
function payingEvents(walk: readonly Reading[], policy: Policy): PayingEvent[] {
  const granted = new Set<string | null>()
  for (const { event, effect } of walk) {
    if (effect === 'grant') granted.add(event.paymentId)
  }
  const paying: PayingEvent[] = []
  for (const reading of walk) {
    const { event, effect, index } = reading
    if (event.subject !== 'payment' || event.paymentId === null) continue
    const pays = granted.has(event.paymentId) ? effect === 'grant' : reportsSuccess(reading, policy)
    if (pays) paying.push({ paymentId: event.paymentId, at: event.createdAt, index })
  }
  return paying
}
