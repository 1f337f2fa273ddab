import type { AccessInterval } from '../../../src/entitlements/model.js'
import type { PlainSource } from './source.js'
import { walkedAt } from './state.js'

/** What the newest subscription event that carries the flag says; a renewal that is silent about it denies it. */
export function showsCancelAtPeriodEnd(source: PlainSource, instant: number): boolean {
  const telling = walkedAt(source, instant).findLast(
    (event) =>
      event.subject === 'subscription' &&
      (event.cancelAtPeriodEnd !== null || event.type === 'subscription.renewed'),
  )
  return telling?.subject === 'subscription' && telling.cancelAtPeriodEnd === true
}

/** Past due, not renewed since, and active all the while. */
export function isPastDue(
  source: PlainSource,
  intervals: readonly AccessInterval[],
  instant: number,
): boolean {
  const walked = walkedAt(source, instant)
  const pastDue = walked.findLastIndex(({ type }) => type === 'subscription.past_due')
  const renewed = walked.findLastIndex(({ type }) => type === 'subscription.renewed')
  const event = walked[pastDue]
  if (!event || renewed > pastDue) return false
  return isUnbroken(intervals, event.createdAt, instant)
}

/** Whether some access ran at every instant from `from` to `to`, be it to one product after another. */
function isUnbroken(intervals: readonly AccessInterval[], from: number, to: number): boolean {
  const running = intervals.find(
    (interval) => interval.from <= from && (interval.until === null || interval.until > from),
  )
  if (!running) return false
  return running.until === null || running.until > to || isUnbroken(intervals, running.until, to)
}
