import type { PaymentEvent, Rail, SubscriptionEvent } from '../provider/event.js'
import { isBetterNaming, namingKindOf } from './naming.js'
import { createPaymentFinder, PAYMENT_SEARCH_MS } from './paying-events.js'
import type { Policy } from './policy.js'
import { isStronger } from './rail.js'
import { effectOf, type Reading, type SourceEvent } from './reading.js'
import { distanceTo, type PaymentMemory, prune, type SubscriptionMemory } from './subscription-memory.js'
import {
  isCycleEvent,
  makesGood,
  reportsSuccess,
  searchesPayment,
  type WalkFacts,
} from './subscription-reading.js'
import { type SubscriptionWalk, walkSubscription } from './walk-subscription.js'

export interface AdvancedSubscription extends SubscriptionWalk {
  readonly rail: Rail
  readonly memory: SubscriptionMemory | null
}

/** Whether no event of the payment was stored before. */
export type IsNewPayment = (paymentId: string) => boolean

/** An event read against a memory: what is known after it, and by which payment its cycle was paid. */
interface Read {
  readonly reading: Reading
  readonly after: SubscriptionMemory
  readonly cyclePayment: string | null
}

/**
 * Takes in an event newer than all before, in time that does not grow with their number.
 * Null: it changes how an older event was read, or may, so that all must be folded again.
 */
export function advanceSubscription(
  memory: SubscriptionMemory,
  event: SourceEvent,
  policy: Policy,
  isNew: IsNewPayment,
): AdvancedSubscription | null {
  if (event.createdAt <= memory.newestAt) return null
  const read =
    event.subject === 'payment'
      ? readPaymentEvent(memory, event, policy, isNew)
      : readSubscriptionEvent(memory, event, policy, isNew)
  if (read === null || isNamedBetter(read.reading, memory)) return null
  const walked = walkSubscription(memory.walk, [read.reading], factsOf(read, policy), policy)
  const after = { ...read.after, newestAt: event.createdAt, count: memory.count + 1, walk: walked.state }
  return { ...walked, rail: after.rail, memory: prune(after) }
}

function factsOf({ reading, after, cyclePayment }: Read, policy: Policy): WalkFacts {
  const paid = after.payments.filter(({ firstPaid }) => firstPaid !== null)
  return {
    makesGood: new Set(makesGood(reading, policy) ? [reading.index] : []),
    firstPaid: new Map(paid.map(({ paymentId, firstPaid }) => [paymentId, Number(firstPaid)])),
    cyclePayments: new Map(cyclePayment === null ? [] : [[reading.index, cyclePayment]]),
    findCharge: (event) => findPayment(after, event, ({ paysCycle }) => !paysCycle),
    namingKind: after.namingKind,
    firstProduct: after.firstProduct,
  }
}

function readPaymentEvent(
  memory: SubscriptionMemory,
  event: PaymentEvent,
  policy: Policy,
  isNew: IsNewPayment,
): Read | null {
  const index = memory.count
  const { paymentId } = event
  if (paymentId === null)
    return { reading: { event, effect: 'none', index }, after: memory, cyclePayment: null }
  const before = recall(memory, paymentId, isNew)
  if (before === null) return null

  const proof = isStronger(event.railProof, before.proof) ? event.railProof : before.proof
  const rail = proof?.rail ?? 'unknown'
  const isKnown = memory.payments.includes(before)
  if (isKnown && rail !== (before.proof?.rail ?? 'unknown')) return null
  // The first payment with a known rail decides how the subscription's own events are read.
  if (memory.rail === 'unknown' && rail !== 'unknown' && memory.railWasRead) return null

  const reading: Reading = { event, effect: effectOf(event, rail, policy), index }
  const isGrant = reading.effect === 'grant'
  if (isGrant && !before.isGranted && before.firstPaid !== null) return null
  const pays = isGrant || (!before.isGranted && reportsSuccess(reading, policy))
  if (pays && changesSearches(memory, event, before)) return null
  const payment: PaymentMemory = {
    ...before,
    proof,
    isGranted: before.isGranted || isGrant,
    firstPaid: before.firstPaid ?? (pays ? index : null),
  }
  const paying = { paymentId, at: event.createdAt, index, isGrant }
  const after: SubscriptionMemory = {
    ...memory,
    rail: memory.rail === 'unknown' ? rail : memory.rail,
    payments: [...memory.payments.filter((one) => one !== before), payment],
    recentPaying: pays ? [...memory.recentPaying, paying] : memory.recentPaying,
  }
  return { reading, after, cyclePayment: null }
}

function readSubscriptionEvent(
  memory: SubscriptionMemory,
  event: SubscriptionEvent,
  policy: Policy,
  isNew: IsNewPayment,
): Read | null {
  const reading: Reading = { event, effect: effectOf(event, memory.rail, policy), index: memory.count }
  const after = { ...memory, railWasRead: true }
  if (!searchesPayment(event)) return { reading, after, cyclePayment: null }

  const named = event.paymentId === null ? undefined : recall(memory, event.paymentId, isNew)
  if (named === null) return null
  const namedUnpaid =
    named !== undefined && named.firstPaid === null && !memory.namedUnpaid.includes(named.paymentId)
      ? [...memory.namedUnpaid, named.paymentId]
      : memory.namedUnpaid
  const cyclePayment = isCycleEvent(event) ? findPayment(memory, event, () => true) : null
  if (cyclePayment !== null && memory.walk.plan.charges.includes(cyclePayment)) return null
  const distance = cyclePayment === null ? null : distanceTo(cyclePayment, event, memory.recentPaying)
  return {
    reading,
    cyclePayment,
    after: {
      ...after,
      namedUnpaid,
      recentSearches: [...memory.recentSearches, { at: event.createdAt, distance }],
      payments: memory.payments.map((payment) =>
        payment.paymentId === cyclePayment ? { ...payment, paysCycle: true } : payment,
      ),
    },
  }
}

/** What is known of a payment, which for a new one is nothing; null: it was forgotten. */
function recall(memory: SubscriptionMemory, paymentId: string, isNew: IsNewPayment): PaymentMemory | null {
  const known = memory.payments.find((payment) => payment.paymentId === paymentId)
  if (known !== undefined) return known
  if (memory.forgotPayments && !isNew(paymentId)) return null
  return { paymentId, proof: null, firstPaid: null, isGranted: false, paysCycle: false }
}

/** As in a whole fold, though only paying events of the last 24 hours are remembered one by one. */
function findPayment(
  { payments, recentPaying }: SubscriptionMemory,
  event: SubscriptionEvent,
  mayBe: (payment: PaymentMemory) => boolean,
): string | null {
  const paid = payments.filter((payment) => payment.firstPaid !== null && mayBe(payment))
  const allowed = new Set(paid.map(({ paymentId }) => paymentId))
  if (event.paymentId !== null && allowed.has(event.paymentId)) return event.paymentId
  return createPaymentFinder(recentPaying.filter(({ paymentId }) => allowed.has(paymentId)))(event)
}

/** Whether an older event, whose payment was searched, would find this one instead. */
function changesSearches(memory: SubscriptionMemory, event: PaymentEvent, before: PaymentMemory): boolean {
  if (before.firstPaid === null && memory.namedUnpaid.includes(before.paymentId)) return true
  return memory.recentSearches.some(({ at, distance }) => {
    const reach = event.createdAt - at
    return reach <= PAYMENT_SEARCH_MS && (distance === null || reach < distance)
  })
}

/** Whether the event names the product in a better way than those that counted so far. */
function isNamedBetter(reading: Reading, { namingKind }: SubscriptionMemory): boolean {
  if (reading.event.productId === null) return false
  return namingKind === null || isBetterNaming(namingKindOf(reading), namingKind)
}
