/* Every reason that an explanation can give, with its facts and its words. */

import type { EndReason, HoldReason } from './model.js'

interface OfPayment {
  readonly paymentId: string
}

/** `by`: the event that took the payment back. */
interface TakenBack extends OfPayment {
  readonly by: string
}

/** `basis`: the payment that access depends on; null: the subscription itself. `since`: the event that made it so. */
interface OtherBasis extends OfPayment {
  readonly basis: string | null
  readonly since: string
}

interface PlanMove extends OfPayment {
  readonly from: string
  readonly to: string
}

interface EndMove {
  readonly reason: EndReason
  readonly from: number
  readonly at: number
}

/**
 * Every reason that an explanation gives: its code, the facts that come with it, and the words for it. Codes and facts
 * are part of the API. Ids are of events and payments of the same source, instants are epoch milliseconds.
 */
const REASONS = {
  // Why an event counted, or why it did not: the clause after what happened.
  held: ({ reason }: { readonly reason: HoldReason }) => HOLD_REASON_TEXT[reason],
  /** Neither the policy nor the documents let this event change access. */
  informed: () => 'for information only, since the policy lets it change nothing',
  payment_unnamed: () => 'for information only, since it names no payment',
  paid: ({ paymentId }: OfPayment) => `${paymentId} counts as paid from here on`,
  paid_already: ({ paymentId }: OfPayment) => `${paymentId} counted as paid already`,
  waits_for_cycle: (kept: OtherBasis) =>
    `${basisText(kept)}, and a further payment counts once a renewal says what it paid`,
  /** `payment.succeeded` where it is no grant. */
  success_only: (_: OfPayment) => 'it counts once the subscription says that a cycle was paid',
  paid_before_end: ({ paymentId, endedBy }: OfPayment & { readonly endedBy: string }) =>
    `${paymentId} was first paid before ${endedBy} ended the subscription, and does not bring it back`,
  final_take_back: ({ paymentId, by }: TakenBack) => `${paymentId} was taken back for good by ${by}`,
  /** Access depended on the payment. */
  taken_back: ({ paymentId }: OfPayment) => `${paymentId} counts no more`,
  taken_back_already: ({ paymentId, by }: TakenBack) => `${paymentId} was taken back by ${by} already`,
  /** A payment is taken back, and access depends on another one. */
  basis_kept: (kept: OtherBasis) => basisText(kept),
  nothing_to_end: ({ paymentId }: OfPayment) => `access did not depend on ${paymentId}`,
  /** By `failedRenewal: "revoke"`. */
  failure_ends_all: (_: Omit<OtherBasis, 'since'>) => 'the policy ends a subscription on any failed payment',
  cycle_paid: ({ paymentId }: OfPayment) => `${paymentId} has paid this cycle`,
  cycle_paid_later: ({ paymentId }: OfPayment) => `${paymentId} pays this cycle, by a later event`,
  /** `cycle`: the event that was waiting for the payment. */
  paid_waiting_cycle: ({ paymentId, cycle }: OfPayment & { readonly cycle: string }) =>
    `${paymentId} pays the cycle of ${cycle}`,
  cycle_taken_back: ({ paymentId, by }: TakenBack) =>
    `${paymentId} should have paid this cycle, and was taken back by ${by}`,
  cycle_without_payment: () => 'the cycle was paid by no payment that is known, so that no refund can end it',
  /** By `paidCycle: "informs"`. */
  cycle_ignored: () => 'no payment of this cycle is known, and the policy asks for one',
  subscription_ended: () => 'the subscription is over',
  subscription_ended_already: () => 'the subscription was giving no access any more',
  canceled: ({ at }: { readonly at: number }, createdAt: number) =>
    at === createdAt ? 'it takes effect at once' : `it takes effect at ${time(at)}`,
  canceled_already: ({ at, by }: { readonly at: number; readonly by: string }) =>
    `${by} had set the end to ${time(at)}, which stands`,
  plan_changed: ({
    to,
    chargedTo,
  }: {
    readonly from: string | null
    readonly to: string
    readonly chargedTo: string | null
  }) =>
    `the plan is ${to} from here on, ${chargedTo === null ? 'without a charge' : `charged to ${chargedTo}`}`,
  plan_change_unpaid: ({
    productId,
    chargedTo,
    by,
  }: {
    readonly productId: string
    readonly chargedTo: string
    readonly by: string
  }) => `the charge for ${productId}, ${chargedTo}, was taken back by ${by}, so the plan stays`,
  /** The charge of the change to `from` is taken back. */
  plan_change_undone: ({ from, to }: PlanMove) => `it was the charge for ${from}, so the plan is ${to} again`,
  plan_change_restored: ({ to }: PlanMove) => `it is the charge for ${to}, so the plan is ${to} after all`,
  /** By hand; `until` null: for good. */
  granted: ({ until }: { readonly until: number | null }) =>
    until === null ? 'for good' : `until ${time(until)}`,
  revoked: () => 'what was granted by hand is taken back',
  not_granted: () => 'nothing was granted by hand at that time',

  // What it changed: a sentence of its own each.
  access_given: ({ productId }: { readonly productId: string }) => `Access to ${productId} begins.`,
  access_ended: ({ productId }: { readonly productId: string }) => `Access to ${productId} ends.`,
  access_moved: ({ from, to }: { readonly from: string; readonly to: string }) =>
    `Access moves from ${from} to ${to}.`,
  end_set: ({ at, reason }: Omit<EndMove, 'from'>) =>
    `It now ends at ${time(at)}: ${END_REASON_TEXT[reason]}.`,
  end_moved: ({ from, at, reason }: EndMove) =>
    `Its end moves from ${time(from)} to ${time(at)}: ${END_REASON_TEXT[reason]}.`,
  end_lifted: ({ from }: Omit<EndMove, 'at'>) => `Its end at ${time(from)} is lifted.`,
  past_due: () => 'A payment is overdue from here on.',
  past_due_over: () => 'No payment is overdue any more.',
  cancellation_announced: ({ at }: { readonly at: number | null }) =>
    `It is to be canceled when the period ends${at === null ? '' : `, at ${time(at)}`}.`,
  cancellation_withdrawn: () => 'It is not to be canceled any more.',
}

type ReasonCode = keyof typeof REASONS

/** One of the reasons, with its facts. */
type Reason<Code extends ReasonCode = ReasonCode> = {
  [C in Code]: { readonly code: C } & FactsOf<(typeof REASONS)[C]>
}[Code]

type FactsOf<Words> = Words extends (facts: infer Facts, ...rest: never[]) => string ? Facts : never

/** What an event changed. */
export type Change = Reason<
  | 'access_given'
  | 'access_ended'
  | 'access_moved'
  | 'end_set'
  | 'end_moved'
  | 'end_lifted'
  | 'past_due'
  | 'past_due_over'
  | 'cancellation_announced'
  | 'cancellation_withdrawn'
>

/** What an event was to its source: why it counted, or why it did not. */
export type NoteCode = Exclude<ReasonCode, Change['code']>
export type Note = Reason<NoteCode>

/** @param createdAt of the event that the reason is about */
export function wordsOf(reason: Reason, createdAt: number): string {
  const words = REASONS[reason.code] as (facts: Reason, createdAt: number) => string
  return words(reason, createdAt)
}

function basisText({ basis, since }: OtherBasis): string {
  return basis === null
    ? `the subscription runs without a known payment since ${since}`
    : `${basis} has paid this cycle since ${since}`
}

/** What a held event waits for. */
export const HOLD_REASON_TEXT: Readonly<Record<HoldReason, string>> = {
  source_unknown: 'waits, since it names neither a payment nor a subscription',
  customer_unknown: 'waits until an event tells whose it is',
  product_unknown: 'waits until an event tells which product it is for',
  rail_unknown:
    'waits until an event tells how it was paid, since a completed checkout alone proves no money',
}

/** Why access ended, or will end. */
export const END_REASON_TEXT: Readonly<Record<EndReason, string>> = {
  failed: 'the payment failed',
  refunded: 'the payment was refunded',
  charged_back: 'the payment was charged back',
  voided: 'the payment was called off',
  expired: 'the subscription expired',
  canceled: 'the subscription was canceled',
  completed: 'its fixed time is over',
  lapsed: 'no renewal came in time',
  moved: 'the plan was changed to another product',
  revoked: 'it was taken back by hand',
}

/** ISO 8601, in UTC. */
export function time(instant: number): string {
  return new Date(instant).toISOString()
}
