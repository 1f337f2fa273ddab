import type { EndsState } from './ends.js'
import type { Change } from './explain-note.js'
import type { Access, End } from './intervals.js'
import type { Shown, WalkStep } from './walk-subscription.js'

const ENDS = ['canceled', 'completed', 'lapsed'] as const satisfies readonly (keyof EndsState)[]

/** What one step of a subscription's walk changed. */
export function changesOf({ reading, before, after }: WalkStep): Change[] {
  const { createdAt, type } = reading.event
  return [
    ...accessChanges(before.access, after.access),
    // An end that is over at once shows as the end of access.
    ...ENDS.flatMap((name) => endChanges(before.ends[name], after.ends[name], createdAt)),
    // A cancellation itself announces nothing: its end is among the ends.
    ...(type === 'subscription.canceled' ? [] : shownChanges(before.shown, after.shown)),
  ]
}

/** What became of access from just before an event to just after it. */
export function accessChanges(before: Access | null, after: Access | null): Change[] {
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
