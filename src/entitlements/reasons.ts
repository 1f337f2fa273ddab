/* What the folds say about each event: every reason and change in an explanation, and the words for each. */

import { isReportedEventId } from '../provider/ids.js'
import { END_REASON_TEXT } from './end-reasons.js'
import {
  type EndReason,
  type FoldableEvent,
  type HoldReason,
  type SourceKey,
  type SourceKind,
  TYPES,
} from './model.js'
import type { PolicyRow } from './policy.js'

type OfPayment = { paymentId: string }
/** `by`: the event that revoked the payment. */
type TakenBack = OfPayment & { by: string }
/** `basis`: the payment that access depends on; null: the subscription itself. `since`: the event that set it. */
type OtherBasis = OfPayment & { basis: string | null; since: string }
type PlanChange = { from: string | null; to: string; chargedTo: string | null }
type UnpaidPlan = { productId: string; chargedTo: string; by: string }
type PlanMove = OfPayment & { from: string; to: string }
type EndMove = { reason: EndReason; from: number; at: number }

/**
 * Why an event counted or did not, as a clause after the name of the event. Codes and facts are part of the API. Ids
 * are of events and payments of the same source; instants are epoch milliseconds.
 */
const NOTES = {
  held: ({ reason }: { reason: HoldReason }) => HOLD_REASON_TEXT[reason],
  /** Neither the policy nor the documentation lets this event change access. */
  informed: () => 'for information only, since the policy lets it change nothing',
  payment_unnamed: () => 'for information only, since it names no payment',
  paid: ({ paymentId }: OfPayment) => `${paymentId} counts as paid from here on`,
  paid_already: ({ paymentId }: OfPayment) => `${paymentId} already counted as paid`,
  waits_for_cycle: (kept: OtherBasis) =>
    `${basisText(kept)}, and another payment counts once a renewal says what it paid`,
  /** `payment.succeeded` that is not a grant. */
  success_only: (_: OfPayment) => 'it counts once the subscription reports a paid cycle',
  paid_before_end: ({ paymentId, endedBy }: OfPayment & { endedBy: string }) =>
    `${paymentId} was first paid before ${endedBy} ended the subscription, and does not bring it back`,
  final_take_back: ({ paymentId, by }: TakenBack) => `${paymentId} was revoked for good by ${by}`,
  /** Access depended on the payment. */
  taken_back: ({ paymentId }: OfPayment) => `${paymentId} no longer counts`,
  taken_back_already: ({ paymentId, by }: TakenBack) => `${paymentId} was already revoked by ${by}`,
  /** The payment is revoked, but access depends on another one. */
  basis_kept: (kept: OtherBasis) => basisText(kept),
  nothing_to_end: ({ paymentId }: OfPayment) => `access did not depend on ${paymentId}`,
  /** By `failedRenewal: "revoke"`. */
  failure_ends_all: (_: Omit<OtherBasis, 'since'>) => 'the policy ends a subscription on any failed payment',
  cycle_paid: ({ paymentId }: OfPayment) => `${paymentId} has paid this cycle`,
  cycle_paid_later: ({ paymentId }: OfPayment) => `${paymentId} pays this cycle, by a later event`,
  /** `cycle`: the event that waited for the payment. */
  paid_waiting_cycle: ({ paymentId, cycle }: OfPayment & { cycle: string }) =>
    `${paymentId} pays the cycle of ${cycle}`,
  cycle_failed: ({ paymentId, by }: TakenBack) =>
    `${paymentId} should have paid this cycle, but failed at ${by}: the cycle waits until it is paid`,
  cycle_taken_back: ({ paymentId, by }: TakenBack) =>
    `${paymentId} should have paid this cycle, but was revoked by ${by}`,
  cycle_without_payment: () => 'no known payment paid the cycle, so no refund can end it',
  /** By `paidCycle: "informs"`. */
  cycle_ignored: () => 'no payment of this cycle is known, and the policy asks for one',
  subscription_ended: () => 'the subscription is over',
  subscription_ended_already: () => 'the subscription no longer gave access',
  canceled: ({ at }: { at: number }, { createdAt }: FoldableEvent) =>
    at === createdAt ? 'it takes effect at once' : `it takes effect at ${time(at)}`,
  canceled_already: ({ at, by }: { at: number; by: string }) =>
    `${by} had already set the end to ${time(at)}`,
  plan_changed: ({ to, chargedTo }: PlanChange) =>
    `the plan is ${to} from here on, ${chargedTo === null ? 'without a charge' : `charged to ${chargedTo}`}`,
  plan_change_unpaid: ({ productId, chargedTo, by }: UnpaidPlan) =>
    `the charge for ${productId}, ${chargedTo}, was revoked by ${by}, so the plan stays the same`,
  /** The charge of the change to `from` is revoked. */
  plan_change_undone: ({ from, to }: PlanMove) => `it was the charge for ${from}, so the plan is ${to} again`,
  plan_change_restored: ({ to }: PlanMove) => `it is the charge for ${to}, so the plan is ${to} after all`,
  /** By hand; `until` null: for good. */
  granted: ({ until }: { until: number | null }) => (until === null ? 'for good' : `until ${time(until)}`),
  revoked: () => 'the manual grant is revoked',
  not_granted: () => 'there was no manual grant at that time',
}

/** What an event changed, as a sentence. Codes and facts are part of the API. */
const CHANGES = {
  access_given: ({ productId }: { productId: string }) => `Access to ${productId} begins.`,
  access_ended: ({ productId }: { productId: string }) => `Access to ${productId} ends.`,
  access_moved: ({ from, to }: { from: string; to: string }) => `Access moves from ${from} to ${to}.`,
  end_set: ({ at, reason }: Omit<EndMove, 'from'>, { subject }: FoldableEvent) =>
    `It now ends at ${time(at)}: ${endReasonText(reason, subject)}.`,
  end_moved: ({ from, at, reason }: EndMove, { subject }: FoldableEvent) =>
    `Its end moves from ${time(from)} to ${time(at)}: ${endReasonText(reason, subject)}.`,
  end_lifted: ({ from }: Omit<EndMove, 'at'>) => `Its end at ${time(from)} is removed.`,
  past_due: () => 'A payment is overdue from here on.',
  past_due_over: () => 'No payment is overdue any more.',
  cancellation_announced: ({ at }: { at: number | null }) =>
    `It will be canceled when the period ends${at === null ? '' : `, at ${time(at)}`}.`,
  cancellation_withdrawn: () => 'The pending cancellation is dropped.',
}

/** One code of a table, with the facts in its words. */
type Coded<Table> = {
  [Code in keyof Table]: Readonly<{ code: Code } & FactsOf<Table[Code]>>
}[keyof Table]

type FactsOf<Words> = Words extends (facts: infer Facts, ...rest: never[]) => string ? Facts : never

export type Note = Coded<typeof NOTES>

export type Change = Coded<typeof CHANGES>

/** The effect of one event on its source, as the fold reports it. */
export interface Step {
  readonly event: FoldableEvent
  /** The matching row of the policy; null: none. */
  readonly row: PolicyRow | null
  readonly note: Note
  readonly changes: readonly Change[]
}

/** Receives every step of a fold, in order. */
export type Observe = (step: Step) => void

/**
 * The effect of one step and its reason: `Refund of pay_1: pay_2 has paid this cycle since evt_9.`
 * @param source the source of the event; null if unknown
 */
export function sentenceOf({ event, note, changes }: Omit<Step, 'row'>, source: SourceKey | null): string {
  const { type, subject } = event
  const about = subject === 'payment' ? event.paymentId : subject === 'subscription' ? source?.id : null
  const name = about ? `${TYPES[type].name} of ${about}` : TYPES[type].name
  const heading = isReportedEventId(event.id) ? `${name}, reported by a backfill` : name
  const isShown = note.code === 'informed' && changes.length > 0
  const clause = isShown ? 'it shows the state of the subscription' : wordsOf(note, event)
  return [`${heading}: ${clause}.`, ...changes.map((change) => wordsOf(change, event))].join(' ')
}

function wordsOf(reason: Note | Change, event: FoldableEvent): string {
  const words = { ...NOTES, ...CHANGES }[reason.code] as (
    facts: typeof reason,
    event: FoldableEvent,
  ) => string
  return words(reason, event)
}

function basisText({ basis, since }: OtherBasis): string {
  return basis === null
    ? `the subscription has run without a known payment since ${since}`
    : `${basis} has paid this cycle since ${since}`
}

/** What a held event waits for. */
export const HOLD_REASON_TEXT: Readonly<Record<HoldReason, string>> = {
  source_unknown: 'waits, since it names neither a payment nor a subscription',
  customer_unknown: 'waits until an event names its customer',
  product_unknown: 'waits until an event names its product',
  rail_unknown:
    'waits until an event shows how it was paid, since a completed checkout alone proves no money',
}

/** Why a source of this kind ended, or will end: a manual grant has no term, it expires. */
export function endReasonText(reason: EndReason, kind: SourceKind): string {
  return kind === 'manual' && reason === 'completed' ? 'the grant expires' : END_REASON_TEXT[reason]
}

/** ISO 8601, in UTC. */
export function time(instant: number): string {
  return new Date(instant).toISOString()
}
