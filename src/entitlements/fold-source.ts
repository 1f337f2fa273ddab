/* Folds all events of one source, of whatever kind, into its state. */

import type { Rail } from '../provider/event.js'
import { foldManual, type GrantAct, grantsOf } from './by-hand.js'
import { type Access, createIntervalTracker, intervalsOf } from './intervals.js'
import type { HoldReason, SourceKey, SourceKind, SourceState } from './model.js'
import { compareByTime, newestTold } from './order.js'
import type { Policy } from './policy.js'
import {
  END_REASON_OF,
  isDecisive,
  type KeptPayment,
  onlyInforms,
  type Reading,
  railIn,
  railOfPayment,
  railsOfPayments,
  readEvents,
  type SourceEvent,
  type Standing,
  standingAfter,
} from './reading.js'
import { readSubscription } from './subscription-reading.js'
import { type Folded, NOTHING_SHOWN, walkSubscription } from './walk-subscription.js'

/** The events that sources are folded from, of every kind. */
export type FoldableEvent = SourceEvent | GrantAct

interface FoldedSource {
  readonly state: SourceState
}

/**
 * Folds the events of one source into its state.
 *
 * Deliveries come late, twice and out of order, so events are walked in (createdAt, rank, id) order,
 * whatever order they arrived in. Same set and policy: same state.
 * @param events all stored events of the source, each once, in any order
 */
export function foldSource(
  { kind, id }: SourceKey,
  events: readonly FoldableEvent[],
  policy: Policy,
): FoldedSource {
  const customerId = newestTold(events, (event) => event.customerId)
  let newestAt = Number.NEGATIVE_INFINITY
  for (const { createdAt } of events) newestAt = Math.max(newestAt, createdAt)
  const sent = events.filter(isSent)
  const acts = kind === 'manual' ? events.filter(isAct) : []
  const { rail, productId, access, shown, cyclesWithoutPayment } = foldKind(kind, sent, acts, policy)
  const held = heldEvents(sent, { customerId, productId }, policy)
  const intervals = intervalsOf(access)
  const { pastDueSince, cancelAtPeriodEnd, periodEnd, providerStatus } = shown
  const state: SourceState = {
    kind,
    id,
    customerId,
    newestAt,
    held,
    rail,
    intervals,
    pastDueSince,
    cancelAtPeriodEnd,
    periodEnd,
    providerStatus,
    cyclesWithoutPayment,
  }
  return { state: kind === 'manual' ? { ...state, grantsByHand: grantsOf(acts) } : state }
}

function foldKind(
  kind: SourceKind,
  sent: readonly SourceEvent[],
  acts: readonly GrantAct[],
  policy: Policy,
): Folded {
  switch (kind) {
    case 'subscription':
      return walkSubscription(readSubscription(sent, policy), policy)
    case 'payment':
      return foldPayment(sent.filter(isPayment), policy)
    case 'manual':
      return { ...NO_SUBSCRIPTION, rail: 'unknown', productId: null, access: foldManual(acts) }
    default:
      return kind satisfies never
  }
}

/** Whether the provider sent it: then the policy decides what follows from it. */
function isSent(event: FoldableEvent): event is SourceEvent {
  return event.subject !== 'manual'
}

function isAct(event: FoldableEvent): event is GrantAct {
  return event.subject === 'manual'
}

function isPayment(event: SourceEvent): event is KeptPayment {
  return event.subject === 'payment'
}

const NO_SUBSCRIPTION = { shown: NOTHING_SHOWN, cyclesWithoutPayment: 0 } as const

/** What one event did to a one-time payment. */
export interface PaymentStep {
  readonly reading: Reading<KeptPayment>
  readonly before: PaymentPoint
  readonly after: PaymentPoint
}

/** The payment at the instant of an event, just before it or just after. */
interface PaymentPoint {
  readonly standing: Standing | undefined
  readonly access: Access | null
}

/**
 * Folds all events of a one-time payment: it gives access while it is good by a grant.
 * @param observe gets every step, in order; without it, nothing is gathered
 */
export function foldPayment(
  events: readonly KeptPayment[],
  policy: Policy,
  observe?: (step: PaymentStep) => void,
): Folded {
  const rail = railOfPayment(events)
  const productId = newestTold(events, (event) => event.productId)
  const tracker = createIntervalTracker()
  let standing: Standing | undefined
  for (const reading of readEvents(events, () => rail, policy)) {
    const { event, effect } = reading
    const before = observe && { standing, access: tracker.accessAt(event.createdAt) }
    standing = standingAfter(standing, event, effect, effect === 'grant')
    const access = standing === 'good' && productId !== null ? { productId, end: null } : null
    tracker.see(event.createdAt, access, { reason: END_REASON_OF[event.type], eventId: event.id })
    if (observe && before) {
      observe({ reading, before, after: { standing, access: tracker.accessAt(event.createdAt) } })
    }
  }
  return { ...NO_SUBSCRIPTION, rail, productId, access: tracker.state() }
}

/** Who and what a source is for; null where no event says so yet. */
export interface Known {
  readonly customerId: string | null
  readonly productId: string | null
}

/** The events of a source that wait for something that no event says yet, and for what. */
function heldEvents(
  events: readonly SourceEvent[],
  known: Known,
  policy: Policy,
): Record<string, HoldReason> {
  // Of most sources none can wait.
  if (known.customerId !== null && known.productId !== null && !events.some(isCheckout)) return {}
  const suspects = events.filter((event) => holdOf(event, known, 'unknown', policy) !== null)
  if (suspects.length === 0) return {}
  const rails = railsOfPayments(events)
  // In one order, so that the same set of events is saved as the same text.
  const held = suspects.sort(compareByTime).flatMap((event) => {
    const reason = holdOf(event, known, railIn(rails.get(event.paymentId ?? '')), policy)
    return reason === null ? [] : [[event.id, reason] as const]
  })
  return Object.fromEntries(held)
}

/** What one event waits for; null: for nothing. `rail` is that of its payment. */
function holdOf(event: SourceEvent, known: Known, rail: Rail, policy: Policy): HoldReason | null {
  if (!isDecisive(event.type, policy) || onlyInforms(event)) return null
  if (known.customerId === null) return 'customer_unknown'
  if (known.productId === null) return 'product_unknown'
  return rail === 'unknown' && isBareCheckout(event, policy) ? 'rail_unknown' : null
}

/** A completed checkout proves no money on its own; a proof of the rail decides what it is worth. */
function isBareCheckout(event: SourceEvent, { grantOn }: Policy): boolean {
  if (!isCheckout(event) || grantOn.unknown.includes('checkout.succeeded')) return false
  return grantOn.card.includes('checkout.succeeded') || grantOn.crypto.includes('checkout.succeeded')
}

function isCheckout({ type }: SourceEvent): boolean {
  return type === 'checkout.succeeded'
}
