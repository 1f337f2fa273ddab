import type { AccessInterval, SourceState } from './model.js'
import { instantFor } from './source-view.js'

/**
 * Whether a source, asked about now, says the same of what may be used before and after: to whom, what, until when,
 * and whether it is to end. What it tells besides (rail, dunning, events that wait) is not access.
 */
export function givesSameAccess(before: SourceState | null, after: SourceState | null, now: number): boolean {
  if (before === null || after === null) return before === after
  return (
    before.customerId === after.customerId &&
    before.cancelAtPeriodEnd === after.cancelAtPeriodEnd &&
    instantFor(before, { now }) === instantFor(after, { now }) &&
    // What a further grant changes of access that runs already shows where an erasure came before it.
    before.grantsByHand?.length === after.grantsByHand?.length &&
    before.intervals.length === after.intervals.length &&
    before.intervals.every((interval, i) => isSame(interval, after.intervals[i]))
  )
}

function isSame(a: AccessInterval, b: AccessInterval | undefined): boolean {
  return (
    a.productId === b?.productId &&
    a.from === b.from &&
    a.until === b.until &&
    a.reason === b.reason &&
    a.eventId === b.eventId
  )
}
