/* Runs the folds again and says of each event what it did and why. */

import { foldManual, type GrantAct } from './by-hand.js'
import type { Outcome } from './derive.js'
import { type FoldableEvent, foldPayment, foldSource, type PaymentStep } from './fold-source.js'
import type { Access, End } from './intervals.js'
import type { HoldReason, SourceKey, SourceState } from './model.js'
import { compareByTime } from './order.js'
import type { Policy } from './policy.js'
import { type KeptPayment, type PolicyRow, rowOf, type SourceEvent } from './reading.js'
import { type Change, type Note, wordsOf } from './reasons.js'
import { readSubscription } from './subscription-reading.js'
import { type Shown, type WalkStep, walkSubscription } from './walk-subscription.js'

/** What a store knows of an event beside what the event says. Instants are epoch milliseconds. */
export interface StoredSourceEvent {
  readonly event: FoldableEvent
  readonly receivedAt: number
  readonly disposition: Outcome['disposition']
}

/** A held event that no source of the customer accounts for. */
export interface StoredHold extends StoredSourceEvent {
  /** Null: it names neither a subscription nor a payment. */
  readonly source: SourceKey | null
  readonly reason: HoldReason
}

export interface ExplainedEvent extends Pick<FoldableEvent, 'id' | 'type' | 'createdAt'> {
  readonly receivedAt: number
  readonly disposition: Outcome['disposition']
  /** The row of the policy that it met; null: none. */
  readonly row: PolicyRow | null
  readonly note: Note
  readonly changes: readonly Change[]
  /** The note and the changes, in words. */
  readonly sentence: string
}

/** A source that gave the product, or could have; every stored event of it once, in the order in which they count. */
export interface ExplainedSource
  extends Pick<SourceState, 'kind' | 'id' | 'rail' | 'customerId' | 'intervals'> {
  readonly events: readonly ExplainedEvent[]
}

export interface ExplainedHold
  extends Pick<ExplainedEvent, 'id' | 'type' | 'createdAt' | 'receivedAt' | 'sentence'>,
    Pick<StoredHold, 'source' | 'reason'> {}

/** A source, folded again, and what each of its events did in that. */
export interface SourceExplanation {
  readonly state: SourceState
  readonly source: ExplainedSource
  readonly held: readonly ExplainedHold[]
}

/** @param stored all stored events of the source, each once, in any order */
export function explainSource(
  key: SourceKey,
  stored: readonly StoredSourceEvent[],
  policy: Policy,
): SourceExplanation {
  const events = stored.map(({ event }) => event)
  const { state } = foldSource(key, events, policy)
  const { kind, id, rail, customerId, intervals } = state
  const storedAs = new Map(stored.map((one) => [one.event.id, one]))
  const explained = noteEvents(key, events, policy).flatMap(({ event, row, ...walked }): ExplainedEvent[] => {
    const known = storedAs.get(event.id)
    if (known === undefined) return []
    const reason = state.held[event.id]
    // What waits changes nothing for anybody yet, however the walk took it in.
    const { note, changes } =
      reason === undefined ? walked : { note: { code: 'held', reason } as const, changes: [] }
    const { type, createdAt } = event
    const { receivedAt, disposition } = known
    const sentence = sentenceOf(event, key, note, changes)
    return [{ id: event.id, type, createdAt, receivedAt, disposition, row, note, changes, sentence }]
  })
  const held = stored.flatMap((one) => {
    const reason = state.held[one.event.id]
    return reason === undefined ? [] : [explainHold({ ...one, source: key, reason })]
  })
  return { state, source: { kind, id, rail, customerId, intervals, events: explained }, held }
}

export function explainHold({ event, receivedAt, source, reason }: StoredHold): ExplainedHold {
  const { id, type, createdAt } = event
  const sentence = sentenceOf(event, source, { code: 'held', reason }, [])
  return { id, type, createdAt, receivedAt, source, reason, sentence }
}

/** One event at its place in the walk: the policy's row that it met, why it counted or not, what it changed. */
interface NotedEvent extends Pick<ExplainedEvent, 'row' | 'note' | 'changes'> {
  readonly event: FoldableEvent
}

/** The fold itself decides; it reports each step that it takes. */
function noteEvents({ kind }: SourceKey, events: readonly FoldableEvent[], policy: Policy): NotedEvent[] {
  switch (kind) {
    case 'subscription':
      return noteSubscription(
        events.filter((event) => event.subject !== 'manual'),
        policy,
      )
    case 'payment':
      return notePayment(
        events.filter((event) => event.subject === 'payment'),
        policy,
      )
    case 'manual':
      return noteManual(events.filter((event) => event.subject === 'manual'))
    default:
      return kind satisfies never
  }
}

function noteSubscription(events: readonly SourceEvent[], policy: Policy): NotedEvent[] {
  const whole = readSubscription(events, policy)
  const noted: NotedEvent[] = []
  walkSubscription(whole, policy, (step) => {
    const { event } = step
    const row = rowOf(event, whole.railOf(event), policy)
    noted.push({ event, row, note: noteOfStep(step), changes: changesOf(step) })
  })
  return noted
}

/** An event that leaves the basis alone may still end the subscription, or change its plan. */
function noteOfStep(step: WalkStep): Note {
  const { note } = step
  switch (note.code) {
    case 'informed':
      return noteOfCancellation(step) ?? noteOfPlan(step) ?? note
    case 'waits_for_cycle':
      return planMove(step, 'plan_change_restored', note.paymentId) ?? note
    case 'basis_kept':
      return planMove(step, 'plan_change_undone', note.paymentId) ?? note
    default:
      return note
  }
}

function noteOfCancellation({ event, after }: WalkStep): Note | null {
  if (event.type !== 'subscription.canceled' || after.ends.canceled === null) return null
  const { at, eventId } = after.ends.canceled
  return eventId === event.id ? { code: 'canceled', at } : { code: 'canceled_already', at, by: eventId }
}

function noteOfPlan({ before, after, takenBackBy }: WalkStep): Note | null {
  const naming = after.namings.at(-1)
  if (after.namings === before.namings || naming === undefined) return null
  const { productId, charge: chargedTo } = naming
  if (productId === before.productId) return null
  if (productId === after.productId) {
    return { code: 'plan_changed', from: before.productId, to: productId, chargedTo }
  }
  if (chargedTo === null) return null
  return { code: 'plan_change_unpaid', productId, chargedTo, by: takenBackBy(chargedTo) }
}

/** Where a payment's event changes the plan, and names no product that counts, it is the charge of a plan change. */
function planMove(
  { before, after }: WalkStep,
  code: 'plan_change_undone' | 'plan_change_restored',
  paymentId: string,
): Note | null {
  const [from, to] = [before.productId, after.productId]
  if (after.namings !== before.namings) return null
  return from === null || to === null || from === to ? null : { code, paymentId, from, to }
}

function notePayment(events: readonly KeptPayment[], policy: Policy): NotedEvent[] {
  const steps: PaymentStep[] = []
  const { rail } = foldPayment(events, policy, (step) => steps.push(step))
  let takenBackBy = ''
  return steps.map((step) => {
    const { event } = step.reading
    const note = noteOfPayment(step, takenBackBy)
    if (step.after.standing !== step.before.standing) takenBackBy = event.id
    const changes = accessChanges(step.before.access, step.after.access)
    return { event, row: rowOf(event, rail, policy), note, changes }
  })
}

function noteOfPayment({ reading, before, after }: PaymentStep, takenBackBy: string): Note {
  const { event, effect } = reading
  const { paymentId } = event
  if (paymentId === null) return { code: 'payment_unnamed' }
  if (effect === 'none') return { code: 'informed' }
  if (effect === 'grant') {
    if (after.standing === 'final') return { code: 'final_take_back', paymentId, by: takenBackBy }
    return { code: before.standing === 'good' ? 'paid_already' : 'paid', paymentId }
  }
  if (before.standing === 'good') return { code: 'taken_back', paymentId }
  if (before.standing !== after.standing) return { code: 'nothing_to_end', paymentId }
  return { code: 'taken_back_already', paymentId, by: takenBackBy }
}

function noteManual(acts: readonly GrantAct[]): NotedEvent[] {
  const ordered = [...acts].sort(compareByTime)
  return ordered.map((event, index) => {
    const { createdAt: at, until } = event
    // Few acts are done by hand to one product of one customer: folding each beginning of them is cheap.
    const runningAfter = (count: number) => {
      const { running } = foldManual(ordered.slice(0, count))
      return running?.end && running.end.at <= at ? null : running
    }
    const [before, after] = [runningAfter(index), runningAfter(index + 1)]
    const end: Change[] =
      after === null || until === null ? [] : [{ code: 'end_set', reason: 'completed', at: until }]
    const changes = [...accessChanges(before, after), ...end]
    if (event.type === 'manual.granted')
      return { event, row: null, note: { code: 'granted', until }, changes }
    return { event, row: null, note: { code: before === null ? 'not_granted' : 'revoked' }, changes }
  })
}

/** What one step of a subscription's walk changed. */
function changesOf({ event, before, after }: WalkStep): Change[] {
  return [
    ...accessChanges(before.access, after.access),
    // An end that is over at once shows as the end of access.
    ...(['canceled', 'completed', 'lapsed'] as const).flatMap((name) =>
      endChanges(before.ends[name], after.ends[name], event.createdAt),
    ),
    // A cancellation itself announces nothing: its end is among the ends.
    ...(event.type === 'subscription.canceled' ? [] : shownChanges(before.shown, after.shown)),
  ]
}

/** What became of access from just before an event to just after it. */
function accessChanges(before: Access | null, after: Access | null): Change[] {
  if (before === null) return after === null ? [] : [{ code: 'access_given', productId: after.productId }]
  if (after === null) return [{ code: 'access_ended', productId: before.productId }]
  if (before.productId === after.productId) return []
  return [{ code: 'access_moved', from: before.productId, to: after.productId }]
}

function endChanges(before: End | null, after: End | null, now: number): Change[] {
  if (after === null)
    return before === null ? [] : [{ code: 'end_lifted', reason: before.reason, from: before.at }]
  if (after.at === before?.at || after.at <= now) return []
  if (before === null) return [{ code: 'end_set', reason: after.reason, at: after.at }]
  return [{ code: 'end_moved', reason: after.reason, from: before.at, at: after.at }]
}

function shownChanges(before: Shown, after: Shown): Change[] {
  const changes: Change[] = []
  if (before.pastDueSince === null && after.pastDueSince !== null) changes.push({ code: 'past_due' })
  if (before.pastDueSince !== null && after.pastDueSince === null) changes.push({ code: 'past_due_over' })
  if (!before.cancelAtPeriodEnd && after.cancelAtPeriodEnd) {
    changes.push({ code: 'cancellation_announced', at: after.periodEnd })
  }
  if (before.cancelAtPeriodEnd && !after.cancelAtPeriodEnd) changes.push({ code: 'cancellation_withdrawn' })
  return changes
}

/** What each type is called. */
const NAME_OF: Readonly<Record<FoldableEvent['type'], string>> = {
  'payment.authorized': 'Authorization',
  'payment.succeeded': 'Success',
  'payment.completed': 'Completion',
  'payment.failed': 'Failure',
  'payment.canceled': 'Voiding',
  'payment.refunded': 'Refund',
  'payment.partially_refunded': 'Partial refund',
  'payment.chargeback': 'Chargeback',
  'payment.settled': 'Settlement',
  'checkout.initiated': 'Begun checkout',
  'checkout.succeeded': 'Completed checkout',
  'checkout.failed': 'Failed checkout',
  'checkout.canceled': 'Canceled checkout',
  'subscription.created': 'Start',
  'subscription.renewed': 'Renewal',
  'subscription.updated': 'Update',
  'subscription.past_due': 'Overdue notice',
  'subscription.canceled': 'Cancellation',
  'subscription.expired': 'Expiry',
  'manual.granted': 'Grant by hand',
  'manual.revoked': 'End of the grant by hand',
}

/** `Refund of pay_1: pay_2 has paid this cycle since evt_9.` */
function sentenceOf(
  event: FoldableEvent,
  source: SourceKey | null,
  note: Note,
  changes: readonly Change[],
): string {
  const { type, subject, createdAt } = event
  const about = subject === 'payment' ? event.paymentId : subject === 'subscription' ? source?.id : null
  const heading = about ? `${NAME_OF[type]} of ${about}` : NAME_OF[type]
  const isShown = note.code === 'informed' && changes.length > 0
  const clause = isShown ? 'it tells how the subscription stands' : wordsOf(note, createdAt)
  return [`${heading}: ${clause}.`, ...changes.map((change) => wordsOf(change, createdAt))].join(' ')
}
