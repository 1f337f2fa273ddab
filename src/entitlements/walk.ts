/* Walks the events of a source in order: its basis, its ends and its plan determine the intervals of access. */

import { type BasisTracker, createBasisTracker } from './basis.js'
import { NOTHING_SHOWN, shownAfter } from './entitlement.js'
import { createIntervalTracker, type End } from './intervals.js'
import { type EndReason, type KeptSubscription, type Shown, type SourceEvent, TYPES } from './model.js'
import type { Policy } from './policy.js'
import { isCancellation, isCycleEvent, namingRankOf, type SourceReading, showsPlan } from './reading.js'
import type { Change, Note, Observe } from './reasons.js'

/**
 * Walks a source's events in order. It gives the product of its plan while it has a basis and the earliest of its ends
 * is in the future.
 * @param observe if omitted, no steps are collected
 */
export function walk(whole: SourceReading, policy: Policy, observe?: Observe) {
  const basis = createBasisTracker(whole, policy)
  const tracker = createIntervalTracker()
  let terms = NO_TERMS
  let namings: readonly Naming[] = []
  let productId = whole.firstProduct

  for (const reading of whole.walk) {
    const { event } = reading
    const before: WalkPoint | undefined = observe && { terms, namings, productId }
    const note = basis.apply(reading)
    const isUpdate = event.type === 'subscription.updated'
    const repeatsPlan =
      isUpdate && event.productId === productId && event.productId === namings.at(-1)?.productId
    if (event.productId !== null && namingRankOf(reading) === whole.namingRank && !repeatsPlan) {
      const changesPlan = isUpdate && event.productId !== productId
      namings = namingsAfter(namings, event.productId, changesPlan ? whole.findCharge(event) : null)
    }
    if (event.subject === 'subscription') terms = termsAfter(terms, event, policy)
    if (namings.length > 0) productId = productAmong(namings, basis) ?? whole.firstProduct
    const access = basis.exists() && productId !== null ? { productId, end: earliest(terms) } : null
    const cause = { reason: TYPES[event.type].ends, eventId: event.id }
    const accessChanges = tracker.see(event.createdAt, access, cause)
    if (observe && before) {
      const after = { terms, namings, productId }
      const changes = [...accessChanges, ...changesOf(event, before.terms, terms)]
      observe({
        event,
        row: reading.row,
        note: noteOf(event, note, before, after, basis),
        changes,
      })
    }
  }
  const cyclesWithoutPayment = basis.cyclesWithoutPayment()
  return { intervals: tracker.intervals(), productId, terms, cyclesWithoutPayment }
}

/** The state just before an event, or just after it. */
interface WalkPoint {
  readonly terms: Terms
  readonly namings: readonly Naming[]
  /** The product in force. */
  readonly productId: string | null
}

/** An event that does not change the basis may still end the subscription, or change its plan. */
function noteOf(
  event: SourceEvent,
  note: Note,
  before: WalkPoint,
  after: WalkPoint,
  { takeBackOf }: BasisTracker,
): Note {
  const [from, to] = [before.productId, after.productId]
  const naming = after.namings === before.namings ? undefined : after.namings.at(-1)
  if (note.code === 'basis_kept' || note.code === 'waits_for_cycle') {
    // A payment event that changes the plan without naming one concerns the charge of a plan change.
    if (naming !== undefined || from === null || to === null || from === to) return note
    const code = note.code === 'basis_kept' ? 'plan_change_undone' : 'plan_change_restored'
    return { code, paymentId: note.paymentId, from, to }
  }
  if (note.code !== 'informed') return note
  const { canceled } = after.terms
  if (isCancellation(event) && canceled !== null) {
    const { at, eventId } = canceled
    return eventId === event.id ? { code: 'canceled', at } : { code: 'canceled_already', at, by: eventId }
  }
  if (naming === undefined || naming.productId === from) return note
  const { productId, charge: chargedTo } = naming
  if (chargedTo === null || productId === to) return { code: 'plan_changed', from, to: productId, chargedTo }
  return { code: 'plan_change_unpaid', productId, chargedTo, by: takeBackOf(chargedTo)?.by ?? '' }
}

/** The state of a subscription from its own events, apart from paid cycles: its ends, and what it shows. */
interface Terms {
  readonly shown: Shown
  readonly canceled: End | null
  readonly completed: End | null
  readonly lapsed: End | null
}

const NO_TERMS: Terms = { shown: NOTHING_SHOWN, canceled: null, completed: null, lapsed: null }

function termsAfter(before: Terms, event: KeptSubscription, policy: Policy): Terms {
  const { cycles, expiresAt } = event
  return {
    shown: shownAfter(before.shown, event),
    canceled: canceledAfter(before.canceled, event, policy),
    // The newest event that shows the end of a fixed term decides.
    completed: cycles !== null && showsPlan(event) ? completionOf(event, policy) : before.completed,
    lapsed:
      policy.lapseAfter !== null && expiresAt !== null
        ? endOf(event, 'lapsed', expiresAt + policy.lapseAfter)
        : before.lapsed,
  }
}

/** A further cancellation can only move the end earlier; a cycle paid since moves it later, or lifts it. */
function canceledAfter(before: End | null, event: KeptSubscription, policy: Policy): End | null {
  if (isCancellation(event)) {
    return earlier(before, endOf(event, 'canceled', cancellationAt(event, policy)))
  }
  if (before === null || !isCycleEvent(event)) return before
  return event.expiresAt === null ? null : endOf(event, 'canceled', event.expiresAt)
}

/** A cancellation takes effect at once, or at the end of the period in the event. */
export function cancellationAt(
  { createdAt, expiresAt, cancelAtPeriodEnd }: KeptSubscription,
  policy: Policy,
) {
  const waits = cancelAtPeriodEnd === true || policy.canceled === 'period_end'
  return waits && expiresAt !== null && expiresAt > createdAt ? expiresAt : createdAt
}

function completionOf(event: KeptSubscription, policy: Policy): End | null {
  const { current, total } = event.cycles ?? { current: null, total: null }
  const isLast = current !== null && total !== null && current >= total
  if (!isLast || event.expiresAt === null || policy.completed === 'keep') return null
  return endOf(event, 'completed', event.expiresAt)
}

function endOf(event: KeptSubscription, reason: EndReason, at: number): End {
  return { at, reason, eventId: event.id }
}

/** The earliest end, past or coming; null: none is known. */
function earliest({ canceled, completed, lapsed }: Terms): End | null {
  return earlier(earlier(canceled, completed), lapsed)
}

function earlier(a: End | null, b: End | null): End | null {
  if (a === null || b === null) return a ?? b
  return b.at < a.at ? b : a
}

/** The changes of an event other than access itself. */
function changesOf(event: SourceEvent, before: Terms, after: Terms): Change[] {
  const changes: Change[] = []
  for (const name of ['canceled', 'completed', 'lapsed'] as const) {
    const [was, is] = [before[name], after[name]]
    if (is === null) {
      if (was !== null) changes.push({ code: 'end_lifted', reason: was.reason, from: was.at })
      // An end that is already over shows as the end of access.
    } else if (is.at !== was?.at && is.at > event.createdAt) {
      const { reason, at } = is
      changes.push(was ? { code: 'end_moved', reason, from: was.at, at } : { code: 'end_set', reason, at })
    }
  }
  // A cancellation itself announces nothing: its end is among the ends.
  if (isCancellation(event)) return changes
  const [was, is] = [before.shown, after.shown]
  const isDue = is.pastDueSince !== null
  if ((was.pastDueSince !== null) !== isDue) changes.push({ code: isDue ? 'past_due' : 'past_due_over' })
  if (was.cancelAtPeriodEnd === is.cancelAtPeriodEnd) return changes
  if (!is.cancelAtPeriodEnd) return [...changes, { code: 'cancellation_withdrawn' }]
  return [...changes, { code: 'cancellation_announced', at: is.periodEnd }]
}

interface Naming {
  readonly productId: string
  /** The payment that a plan change was charged to; while that is revoked, the change does not count. */
  readonly charge: string | null
}

/** The newest naming counts if its charge, if any, is not revoked. */
function productAmong(namings: readonly Naming[], { takeBackOf }: BasisTracker): string | null {
  const counts = namings.findLast(({ charge }) => charge === null || !takeBackOf(charge))
  return counts?.productId ?? null
}

/** The namings that may still count, oldest first: if a charge is revoked, an earlier one counts again. */
function namingsAfter(namings: readonly Naming[], productId: string, charge: string | null) {
  // One without a charge always counts, so no earlier one ever will again.
  if (charge !== null) return [...namings, { productId, charge }]
  const [only] = namings
  const isKnown = namings.length === 1 && only?.charge === null && only.productId === productId
  return isKnown ? namings : [{ productId, charge }]
}
