import type { ManualEvent } from '../provider/event.js'
import { lastsUntil } from './intervals.js'
import type { AccessInterval, GrantByHand, SourceState } from './model.js'
import { compareByTime } from './order.js'

/** That a customer was erased: when, in epoch milliseconds, and by which event. */
export interface Erasure {
  readonly at: number
  readonly eventId: string
}

/** Every erasure of one customer, the first one first: a pure function of the set of what was done by hand to them. */
export function foldErasures(events: readonly ManualEvent[]): readonly Erasure[] {
  return [...events]
    .filter(({ type }) => type === 'manual.erased')
    .sort(compareByTime)
    .map(({ createdAt: at, id: eventId }) => ({ at, eventId }))
}

/**
 * A source as it stands for a customer who was erased: each stretch of access that began before ends at the erasure,
 * through all renewals and plan changes to come. What begins later stands, and a grant by hand begins anew.
 */
export function afterErasures(source: SourceState, erasures: readonly Erasure[]): SourceState {
  if (erasures.length === 0) return source
  const intervals = erasures.reduce(
    (standing, erasure) => endAt(standing, erasure, source.grantsByHand ?? []),
    source.intervals,
  )
  // Asked about now, it is ended by the erasure even where the clock was set back since.
  const newestAt = Math.max(source.newestAt, ...erasures.map(({ at }) => at))
  return { ...source, intervals, newestAt }
}

function endAt(
  intervals: readonly AccessInterval[],
  { at, eventId }: Erasure,
  grants: readonly GrantByHand[],
): readonly AccessInterval[] {
  let goesOnUntil = at
  return intervals.flatMap((interval) => {
    const { from, until } = interval
    const isBegunBefore = from < at && lastsUntil(interval) > at
    // One plan after the other, without a gap between, is the same stretch.
    const goesOn = from >= at && from === goesOnUntil && goesOnUntil > at
    if (!isBegunBefore && !goesOn) return [interval]
    goesOnUntil = lastsUntil(interval)
    const before = isBegunBefore ? [{ ...interval, until: at, reason: 'revoked' as const, eventId }] : []
    const again = grants.find((grant) => grant.at >= at && grant.at >= from && grant.at < goesOnUntil)
    if (again === undefined) return before
    goesOnUntil = at
    return [...before, { ...interval, from: again.at, ...(until === null && { eventId: again.eventId }) }]
  })
}
