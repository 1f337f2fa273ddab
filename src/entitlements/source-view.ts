import { lastsUntil } from './intervals.js'
import type { AccessInterval, SourceState, SourceView } from './model.js'

/**
 * The instant that a question is about. Asked about now, a source answers as of the later of the clock and
 * its newest event, since the provider's clock may run ahead of ours; asked about an instant, as of that.
 */
export type Instant = { readonly now: number } | { readonly at: number }

export function instantFor(source: SourceState, instant: Instant): number {
  return 'at' in instant ? instant.at : Math.max(instant.now, source.newestAt)
}

/** One source as it stands for one product; null where it had not given that product by then. */
export function viewSource(source: SourceState, productId: string, at: number): SourceView | null {
  const interval = lastBegunBy(source.intervals, productId, at)
  if (interval === null) return null
  const active = lastsUntil(interval) > at
  return {
    id: source.id,
    kind: source.kind,
    active,
    since: active ? interval.from : null,
    until: interval.until,
    rail: source.rail,
    pastDue: active && isPastDue(source, at),
    cancelAtPeriodEnd: source.cancelAtPeriodEnd,
    periodEnd: source.periodEnd,
    reason: interval.reason,
    eventId: interval.eventId,
  }
}

/** Past due, and with access all the while since, be it to one product after another. */
function isPastDue({ pastDueSince, intervals }: SourceState, at: number): boolean {
  if (pastDueSince === null || pastDueSince > at) return false
  let reached = pastDueSince
  for (const interval of intervals) {
    if (interval.from <= reached) reached = Math.max(reached, lastsUntil(interval))
  }
  return reached > at
}

function lastBegunBy(
  intervals: readonly AccessInterval[],
  productId: string,
  at: number,
): AccessInterval | null {
  let last: AccessInterval | null = null
  for (const interval of intervals) {
    if (interval.productId === productId && interval.from <= at) last = interval
  }
  return last
}
