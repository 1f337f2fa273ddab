import type { Rail, RailProof } from '../provider/event.js'
import type { NamingKind } from './naming.js'
import { PAYMENT_SEARCH_MS, type PayingEvent } from './paying-events.js'
import type { Reading } from './reading.js'
import { type SubscriptionReading, searchesPayment } from './subscription-reading.js'
import type { WalkState } from './walk-subscription.js'

/** What must be remembered of one payment to tell whether a newer event changes how older ones were read. */
export interface PaymentMemory {
  readonly paymentId: string
  readonly proof: RailProof | null
  /** The index of its first paying event; null: it has not paid yet. */
  readonly firstPaid: number | null
  readonly isGranted: boolean
  readonly paysCycle: boolean
}

/** An event whose payment was searched: a paying event nearer to it than this would be found instead. */
export interface PaymentSearch {
  readonly at: number
  /** Milliseconds to the payment found; null: any paying event within reach may change what is found. */
  readonly distance: number | null
}

/**
 * Enough of a folded subscription to take in an event newer than all of it. Bounded, however many events there
 * were: what it has forgotten can only be told by folding all of them again.
 */
export interface SubscriptionMemory {
  /** `createdAt` of the newest event. */
  readonly newestAt: number
  /** How many events were walked, and so the index of the next. */
  readonly count: number
  readonly walk: WalkState
  readonly rail: Rail
  /** Whether any event was read under the subscription's own rail. */
  readonly railWasRead: boolean
  readonly namingKind: NamingKind | null
  readonly firstProduct: string | null
  /** In order of their last event: the newest ones, and those that the walk may come back to. */
  readonly payments: readonly PaymentMemory[]
  readonly forgotPayments: boolean
  /** Payments that a cycle or a plan change named before they had paid. */
  readonly namedUnpaid: readonly string[]
  /** What a newer event may still be near to. */
  readonly recentPaying: readonly PayingEvent[]
  readonly recentSearches: readonly PaymentSearch[]
}

/** Dunning tries a payment at most 8 times a cycle: enough for the newest two cycles. */
const PAYMENTS_KEPT = 16

/** No lawful source has more within 24 hours; one that has is folded whole each time. */
const RECENT_KEPT = 64

/** Keeps of a memory what an event newer than all of it can still need; null: too much to be worth keeping. */
export function prune(memory: SubscriptionMemory): SubscriptionMemory | null {
  const { basis, plan } = memory.walk
  const oldest = memory.newestAt - PAYMENT_SEARCH_MS
  const recentPaying = memory.recentPaying.filter(({ at }) => at >= oldest)
  const recentSearches = memory.recentSearches.filter(({ at }) => at >= oldest)
  const counts = [recentPaying.length, recentSearches.length, plan.charges.length, memory.namedUnpaid.length]
  if (Math.max(...counts) > RECENT_KEPT) return null

  const needed = new Set<string | null>(recentPaying.map(({ paymentId }) => paymentId))
  for (const { charge } of plan.namings) needed.add(charge)
  if (basis.ground !== null && basis.ground !== 'the subscription itself') needed.add(basis.ground.paymentId)
  const firstKept = memory.payments.length - PAYMENTS_KEPT
  const payments = memory.payments.filter(({ paymentId }, i) => i >= firstKept || needed.has(paymentId))
  const kept = new Set(payments.map(({ paymentId }) => paymentId))
  const standings = basis.standings.filter(([paymentId]) => kept.has(paymentId))
  return {
    ...memory,
    walk: { ...memory.walk, basis: { ...basis, standings } },
    payments,
    forgotPayments: memory.forgotPayments || payments.length < memory.payments.length,
    recentPaying,
    recentSearches,
  }
}

/** What to remember of a subscription that was folded whole. */
export function rememberSubscription(whole: SubscriptionReading, walk: WalkState): SubscriptionMemory | null {
  const newestAt = whole.walk.at(-1)?.event.createdAt ?? Number.NEGATIVE_INFINITY
  const recent = whole.walk.filter(({ event }) => event.createdAt >= newestAt - PAYMENT_SEARCH_MS)
  return prune({
    newestAt,
    count: whole.walk.length,
    walk,
    rail: whole.rail,
    railWasRead: whole.walk.some(({ event }) => event.subject === 'subscription'),
    namingKind: whole.namingKind,
    firstProduct: whole.firstProduct,
    payments: paymentsOf(whole),
    forgotPayments: false,
    namedUnpaid: namedUnpaid(whole),
    recentPaying: whole.paying,
    recentSearches: recent.flatMap((reading) => searchOf(reading, whole) ?? []),
  })
}

function paymentsOf(whole: SubscriptionReading): PaymentMemory[] {
  const ofCycles = new Set(whole.cyclePayments.values())
  const granted = new Set(whole.paying.filter(({ isGrant }) => isGrant).map(({ paymentId }) => paymentId))
  const lastSeen = new Map<string, number>()
  for (const { event, index } of whole.walk) {
    if (event.subject === 'payment' && event.paymentId !== null) lastSeen.set(event.paymentId, index)
  }
  return [...lastSeen]
    .sort(([, a], [, b]) => a - b)
    .map(([paymentId]) => ({
      paymentId,
      proof: whole.payments.get(paymentId)?.provenBy?.railProof ?? null,
      firstPaid: whole.firstPaid.get(paymentId) ?? null,
      isGranted: granted.has(paymentId),
      paysCycle: ofCycles.has(paymentId),
    }))
}

function namedUnpaid({ walk, firstPaid }: SubscriptionReading): string[] {
  const searching = walk.filter(({ event }) => searchesPayment(event))
  const named = new Set(searching.map(({ event }) => event.paymentId).filter((id) => id !== null))
  return [...named].filter((paymentId) => !firstPaid.has(paymentId))
}

function searchOf({ event, index }: Reading, whole: SubscriptionReading): PaymentSearch | null {
  if (!searchesPayment(event)) return null
  const found = whole.cyclePayments.get(index)
  const distance = found === undefined ? null : distanceTo(found, event, whole.paying)
  return { at: event.createdAt, distance }
}

/** 0 where the payment is named: nothing is nearer than that. */
export function distanceTo(
  paymentId: string,
  event: { readonly paymentId: string | null; readonly createdAt: number },
  paying: readonly PayingEvent[],
): number {
  if (event.paymentId === paymentId) return 0
  const own = paying.filter((one) => one.paymentId === paymentId)
  return Math.min(...own.map(({ at }) => Math.abs(at - event.createdAt)))
}
