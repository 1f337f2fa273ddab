import type { PaymentEvent, Rail } from '../provider/event.js'
import { advanceSubscription, type IsNewPayment } from './advance-subscription.js'
import { foldManual, grantsOf } from './fold-manual.js'
import { advancePayment, type FoldedPayment, foldPayment, railOf } from './fold-payment.js'
import { type FoldedSubscription, foldSubscription } from './fold-subscription.js'
import { heldEvents, holdOf } from './held.js'
import { intervalsOf, type TrackerState } from './intervals.js'
import type { GrantAct } from './manual-source.js'
import type { GrantByHand, SourceKey, SourceKind, SourceState } from './model.js'
import { newestTold } from './order.js'
import type { Policy } from './policy.js'
import type { SourceEvent } from './reading.js'
import type { SubscriptionMemory } from './subscription-memory.js'
import { type Shown, WALK_START } from './walk-subscription.js'

/** The events that sources are folded from, of every kind. */
export type FoldableEvent = SourceEvent | GrantAct

/** What has to be remembered of a source to take in a newer event; plain data, to be saved beside its state. */
export type SourceMemory = { readonly subscription: SubscriptionMemory } | { readonly payment: FoldedPayment }

export interface FoldedSource {
  readonly state: SourceState
  /** Null: this source is folded whole each time. */
  readonly memory: SourceMemory | null
}

/**
 * Folds the events of one source into its state.
 *
 * Deliveries come late, twice and out of order, so events are walked in (createdAt, rank, id) order,
 * whatever order they arrived in. Same set and policy: same state.
 * @param events all stored events of the source, each once, in any order
 */
export function foldSource(key: SourceKey, events: readonly FoldableEvent[], policy: Policy): FoldedSource {
  const customerId = newestTold(events, (event) => event.customerId)
  let newestAt = Number.NEGATIVE_INFINITY
  for (const { createdAt } of events) newestAt = Math.max(newestAt, createdAt)
  const policyEvents = events.filter(isPolicyEvent)
  const folded = foldKind(key.kind, events, policyEvents, policy)
  const held = heldEvents(policyEvents, { customerId, productId: folded.productId }, policy)
  return { state: toState(key, folded, { customerId, newestAt, held }), memory: folded.memory }
}

function foldKind(
  kind: SourceKind,
  events: readonly FoldableEvent[],
  policyEvents: readonly SourceEvent[],
  policy: Policy,
): Folded {
  switch (kind) {
    case 'subscription':
      return ofSubscription(foldSubscription(policyEvents, policy))
    case 'payment':
      return ofPayment(foldPayment(policyEvents.filter(isPaymentEvent), policy))
    case 'manual':
      return ofManual(events.filter((event) => event.subject === 'manual'))
    default:
      return kind satisfies never
  }
}

/**
 * Takes in one event newer than all of a folded source, in time that does not grow with their number.
 * Equal to folding all of them again; null where only that can tell.
 * @param isNew whether no event of the payment was stored before
 */
export function advanceSource(
  { state, memory }: FoldedSource,
  event: FoldableEvent,
  policy: Policy,
  isNew: IsNewPayment,
): FoldedSource | null {
  if (event.subject === 'manual') return null
  const folded = memory === null ? null : advance(memory, event, policy, isNew)
  if (folded === null) return null
  const customerId = event.customerId ?? state.customerId
  // What waited for a customer waits no more, or for something else.
  if (state.customerId === null && customerId !== null && Object.keys(state.held).length > 0) return null
  const hold = holdOf(
    event,
    { customerId, productId: folded.productId },
    folded.railOf(event.paymentId),
    policy,
  )
  const held = hold === null ? state.held : { ...state.held, [event.id]: hold }
  const told = { customerId, newestAt: event.createdAt, held }
  return { state: toState(state, folded, told), memory: folded.memory }
}

/** What both kinds of source come down to. */
interface Folded {
  readonly rail: Rail
  readonly productId: string | null
  readonly access: TrackerState
  readonly shown: Shown
  readonly cyclesWithoutPayment: number
  readonly memory: SourceMemory | null
  readonly grantsByHand?: readonly GrantByHand[]
  /** The rail of the payment that an event of this source is about. */
  readonly railOf: (paymentId: string | null) => Rail
}

function advance(
  memory: SourceMemory,
  event: SourceEvent,
  policy: Policy,
  isNew: IsNewPayment,
): Folded | null {
  if ('subscription' in memory) {
    const folded = advanceSubscription(memory.subscription, event, policy, isNew)
    return folded && ofSubscription(folded)
  }
  const folded = isPaymentEvent(event) ? advancePayment(memory.payment, event, policy) : null
  return folded && ofPayment(folded)
}

function ofSubscription({ rail, productId, state, memory }: FoldedSubscription): Folded {
  const payments = memory?.payments ?? []
  return {
    rail,
    productId,
    access: state.access,
    shown: state.shown,
    cyclesWithoutPayment: state.basis.cyclesWithoutPayment,
    memory: memory && { subscription: memory },
    railOf: (id) => railOf(payments.find(({ paymentId }) => paymentId === id)?.proof ?? null),
  }
}

function ofPayment(folded: FoldedPayment): Folded {
  const rail = railOf(folded.proof)
  return {
    rail,
    productId: folded.productId,
    access: folded.access,
    shown: WALK_START.shown,
    cyclesWithoutPayment: 0,
    memory: { payment: folded },
    railOf: () => rail,
  }
}

/** Few acts are done by hand to one product of one customer: they are folded whole each time. */
function ofManual(acts: readonly GrantAct[]): Folded {
  return {
    rail: 'unknown',
    productId: null,
    access: foldManual(acts),
    grantsByHand: grantsOf(acts),
    shown: WALK_START.shown,
    cyclesWithoutPayment: 0,
    memory: null,
    railOf: () => 'unknown',
  }
}

function toState(
  { kind, id }: SourceKey,
  { rail, access, shown, cyclesWithoutPayment, grantsByHand }: Folded,
  told: Pick<SourceState, 'customerId' | 'newestAt' | 'held'>,
): SourceState {
  return {
    kind,
    id,
    ...told,
    rail,
    intervals: intervalsOf(access),
    ...shown,
    cyclesWithoutPayment,
    ...(grantsByHand && { grantsByHand }),
  }
}

/** Whether the policy decides what follows from it, as it does for all that the provider sends. */
function isPolicyEvent(event: FoldableEvent): event is SourceEvent {
  return event.subject === 'payment' || event.subject === 'subscription'
}

function isPaymentEvent(event: FoldableEvent): event is PaymentEvent {
  return event.subject === 'payment'
}
