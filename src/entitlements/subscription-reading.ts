/* What only the whole set of a subscription's events can say: which payment paid which cycle, which events name the plan. */

import type { Rail } from '../provider/event.js'
import type { Policy } from './policy.js'
import {
  type KeptSubscription,
  type Reading,
  railIn,
  railOfSubscription,
  railsOfPayments,
  readEvents,
  type SourceEvent,
} from './reading.js'

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
  readonly namingRank: number
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
  const { namingRank, firstProduct } = chooseNamings(walk)
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
    namingRank,
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

/** How far a payment may be from the event that says it was made, either way: 24 hours. */
const PAYMENT_SEARCH_MS = 24 * 60 * 60 * 1000

/** An event by which a payment paid, at its place in the walk. */
interface PayingEvent {
  readonly paymentId: string
  readonly at: number
  readonly index: number
}

/** Finds the payment that a subscription event speaks of, among paying events in walk order; null: none. */
type PaymentFinder = (event: KeptSubscription) => string | null

/**
 * The payment that the event names, if it paid; else the one whose paying event is nearest in time,
 * the earlier in order at equal distance.
 * @param hasPaid whether a payment is among those of `paying`
 */
function createPaymentFinder(
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

const NAMING_TYPES: readonly string[] = [
  'subscription.created',
  'subscription.renewed',
  'subscription.updated',
]

/** How well an event can name the product: 0 is best, then as another subscription event, as a grant, as any event. */
export function namingRankOf({ event, effect }: Reading): number {
  if (NAMING_TYPES.includes(event.type)) return 0
  if (event.subject === 'subscription') return 1
  return effect === 'grant' ? 2 : 3
}

/** Only the best rank that there is counts; the others are not read at all. */
function chooseNamings(walk: readonly Reading[]): { namingRank: number; firstProduct: string | null } {
  let namingRank = Number.POSITIVE_INFINITY
  let firstProduct: string | null = null
  for (const reading of walk) {
    const { productId } = reading.event
    if (productId === null) continue
    const rank = namingRankOf(reading)
    if (rank < namingRank) {
      namingRank = rank
      firstProduct = productId
    }
  }
  return { namingRank, firstProduct }
}
