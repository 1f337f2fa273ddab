/*
 * What only the whole set of a source's events shows: rails, order, which payment paid which cycle, who names the plan.
 */

import type { Rail } from '../provider/event.js'
import { compareByTime, compareText, newestValue } from '../provider/order.js'
import { type KeptPayment, type KeptSubscription, type SourceEvent, SUBSCRIPTION_TYPES } from './model.js'
import { type Policy, tableOf, type Verdict, verdictOn } from './policy.js'

/** An event in the walk: its place in the order, and how the policy's table treats it. */
export interface Reading extends Verdict {
  readonly event: SourceEvent
  /** Position in the walk: a lower one is walked earlier. */
  readonly index: number
}

/** What the whole set of a source's events shows, before the walk. */
export interface SourceReading {
  readonly rail: Rail
  /** The rail used to read an event. */
  readonly railOf: (event: SourceEvent) => Rail
  readonly walk: readonly Reading[]
  /** Whether a success that is not a grant makes its payment good. */
  readonly successPays: boolean
  /** The index of each payment's first paying event. */
  readonly firstPaid: ReadonlyMap<string, number>
  /** The payment of each cycle event, by the event's index; missing if none is found. */
  readonly cyclePayments: ReadonlyMap<number, string>
  /** Finds the charge of a plan change: never a payment that paid a cycle. */
  readonly findCharge: PaymentFinder
  /** Which events count as naming the product. */
  readonly namingRank: number
  /** The product before the first event that names one: that event's product. */
  readonly firstProduct: string | null
}

/** Reads a one-time payment: there are no cycles to pay, and its product never changes. */
export function readPayment(events: readonly SourceEvent[], policy: Policy): SourceReading {
  let provenBy: KeptPayment | null = null
  for (const event of events) if (event.subject === 'payment') provenBy = betterProof(event, provenBy)
  const rail = provenBy?.railProof?.rail ?? 'unknown'
  const railOf = (): Rail => rail
  return {
    rail,
    railOf,
    walk: inOrder(events, railOf, policy),
    successPays: false,
    firstPaid: NO_CYCLES,
    cyclePayments: NO_CYCLES,
    findCharge: findNothing,
    namingRank: -1,
    firstProduct: newestValue(events, (event) => event.productId),
  }
}

const NO_CYCLES = new Map()
const findNothing: PaymentFinder = () => null

export function readSubscription(events: readonly SourceEvent[], policy: Policy): SourceReading {
  const payments = railsOfPayments(events)
  const rail = railOfSubscription(payments.values())
  const railOf = (event: SourceEvent): Rail =>
    event.subject === 'subscription' ? rail : railIn(payments.get(event.paymentId ?? ''))
  const walk = inOrder(events, railOf, policy)
  const successPays = policy.paidCycle === 'grants'
  const paying = payingEvents(walk, successPays)
  const firstPaid = new Map<string, number>()
  for (const { paymentId, index } of paying) {
    if (!firstPaid.has(paymentId)) firstPaid.set(paymentId, index)
  }
  const findPayment = createPaymentFinder(paying, firstPaid)
  const cyclePayments = new Map<number, string>()
  for (const { event, index } of walk) {
    const paymentId = isCycleEvent(event) ? findPayment(event) : null
    if (paymentId !== null) cyclePayments.set(index, paymentId)
  }
  // Few subscriptions ever change their plan.
  let findAmongCharges: PaymentFinder | null = null
  const findCharge: PaymentFinder = (event) => {
    findAmongCharges ??= createPaymentFinder(paying, firstPaid, new Set(cyclePayments.values()))
    return findAmongCharges(event)
  }
  return { rail, railOf, walk, successPays, firstPaid, cyclePayments, findCharge, ...chooseNamings(walk) }
}

/** Of two events of a payment, the one with the stronger proof, the earlier of equals; null: no proof so far. */
function betterProof(event: KeptPayment, best: KeptPayment | null): KeptPayment | null {
  if (event.railProof === null) return best
  const lead = event.railProof.strength - (best?.railProof?.strength ?? 0)
  return lead > 0 || (lead === 0 && best !== null && compareByTime(event, best) < 0) ? event : best
}

/** A payment's earliest event, and the one that proves its rail; null: none does. */
interface PaymentRail {
  first: KeptPayment
  provenBy: KeptPayment | null
}

/** By payment; events without one belong to no payment. */
function railsOfPayments(events: readonly SourceEvent[]): ReadonlyMap<string, PaymentRail> {
  const rails = new Map<string, PaymentRail>()
  for (const event of events) {
    if (event.subject !== 'payment' || event.paymentId === null) continue
    const known = rails.get(event.paymentId)
    if (known === undefined) {
      rails.set(event.paymentId, { first: event, provenBy: betterProof(event, null) })
    } else {
      if (compareByTime(event, known.first) < 0) known.first = event
      known.provenBy = betterProof(event, known.provenBy)
    }
  }
  return rails
}

function railIn(payment: PaymentRail | undefined): Rail {
  return payment?.provenBy?.railProof?.rail ?? 'unknown'
}

/** The rail of the earliest payment with a known rail, by first event. */
function railOfSubscription(payments: Iterable<PaymentRail>): Rail {
  let earliest: PaymentRail | undefined
  for (const payment of payments) {
    if (payment.provenBy === null) continue
    if (earliest === undefined || compareByTime(payment.first, earliest.first) < 0) earliest = payment
  }
  return railIn(earliest)
}

interface RankedReading extends Reading {
  index: number
  readonly rank: number
}

/** Reads every event by its rail's row, and sorts them into walk order. */
function inOrder(
  events: readonly SourceEvent[],
  railOf: (event: SourceEvent) => Rail,
  policy: Policy,
): readonly Reading[] {
  const table = tableOf(policy)
  const ranked: RankedReading[] = []
  for (const event of events) {
    const { effect, row } = verdictOn(event, railOf(event), table)
    ranked.push({ event, effect, row, index: 0, rank: rankOf(event, effect) })
  }
  ranked.sort(compareInWalk)
  let index = 0
  for (const reading of ranked) reading.index = index++
  return ranked
}

function compareInWalk(a: RankedReading, b: RankedReading): number {
  return a.event.createdAt - b.event.createdAt || a.rank - b.rank || compareText(a.event.id, b.event.id)
}

/** At one instant: information first, then grants, then ends, so that a take-back has the last word. */
function rankOf(event: SourceEvent, effect: Verdict['effect']): number {
  if (effect === 'take_back') return 4
  if (effect === 'grant' || event.type === 'payment.succeeded') return 1
  if (isCycleEvent(event)) return 2
  return isCancellation(event) ? 3 : 0
}

/** The events that say that a cycle was paid. */
export function isCycleEvent(event: SourceEvent): event is KeptSubscription {
  return event.subject === 'subscription' && SUBSCRIPTION_TYPES[event.type].pays !== null
}

export function isCancellation(event: SourceEvent): boolean {
  return event.subject === 'subscription' && SUBSCRIPTION_TYPES[event.type].ends === 'canceled'
}

interface PayingEvent {
  readonly paymentId: string
  readonly at: number
  readonly index: number
}

/** In walk order, each payment's grants; for a payment without grants, its reports of success. */
function payingEvents(walk: readonly Reading[], successPays: boolean): PayingEvent[] {
  const granted = new Set<string | null>()
  for (const { event, effect } of walk) {
    if (effect === 'grant') granted.add(event.paymentId)
  }
  const paying: PayingEvent[] = []
  for (const { event, effect, index } of walk) {
    if (event.subject !== 'payment' || event.paymentId === null) continue
    const pays = granted.has(event.paymentId)
      ? effect === 'grant'
      : successPays && event.type === 'payment.succeeded'
    if (pays) paying.push({ paymentId: event.paymentId, at: event.createdAt, index })
  }
  return paying
}

/** How far a payment may be from the event that reports it, in either direction: 24 hours. */
const PAYMENT_SEARCH_MS = 24 * 60 * 60 * 1000

/** Finds the payment that a subscription event is about; null: none. */
type PaymentFinder = (event: KeptSubscription) => string | null

/**
 * The payment that the event names, if it paid; else the one with the paying event nearest in time,
 * the earlier in order at equal distance.
 * @param firstPaid has every payment that paid
 * @param except payments that can't be meant
 */
function createPaymentFinder(
  all: readonly PayingEvent[],
  firstPaid: ReadonlyMap<string, number>,
  except?: ReadonlySet<string>,
): PaymentFinder {
  const paying = except === undefined ? all : all.filter(({ paymentId }) => !except.has(paymentId))
  return ({ paymentId, createdAt }) => {
    if (paymentId !== null && firstPaid.has(paymentId) && !except?.has(paymentId)) return paymentId
    let nearest: string | null = null
    let least = PAYMENT_SEARCH_MS + 1
    for (const one of paying) {
      const distance = Math.abs(one.at - createdAt)
      if (distance < least) {
        nearest = one.paymentId
        least = distance
      } else if (one.at > createdAt) break
    }
    return nearest
  }
}

/** How well an event can name the product: 0 is best, then another subscription event, a grant, any event. */
export function namingRankOf({ event, effect }: Reading): number {
  if (event.subject === 'subscription') return showsPlan(event) ? 0 : 1
  return effect === 'grant' ? 2 : 3
}

/** The events that show a subscription's plan and the end of its term. */
export function showsPlan({ type }: KeptSubscription): boolean {
  return SUBSCRIPTION_TYPES[type].plan
}

/** Only events of the best rank count; the others are not read. */
function chooseNamings(walk: readonly Reading[]): Pick<SourceReading, 'namingRank' | 'firstProduct'> {
  let namingRank = Number.POSITIVE_INFINITY
  let firstProduct: string | null = null
  for (const reading of walk) {
    const { productId } = reading.event
    const rank = productId === null ? namingRank : namingRankOf(reading)
    if (rank < namingRank) {
      namingRank = rank
      firstProduct = productId
    }
  }
  return { namingRank, firstProduct }
}
