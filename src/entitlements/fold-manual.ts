import { createIntervalTracker, type TrackerState } from './intervals.js'
import type { GrantAct } from './manual-source.js'
import type { GrantByHand } from './model.js'
import { compareByTime } from './order.js'

/**
 * Folds what was granted and revoked by hand: access from a grant until it is revoked, or its own end comes.
 * A later grant replaces the end of the one before it. The policy has no say in it.
 */
export function foldManual(acts: readonly GrantAct[]): TrackerState {
  const tracker = createIntervalTracker()
  for (const { id: eventId, type, productId, createdAt, until } of [...acts].sort(compareByTime)) {
    const end = until === null ? null : { at: until, reason: 'completed' as const, eventId }
    const access = type === 'manual.granted' ? { productId, end } : null
    tracker.see(createdAt, access, { reason: 'revoked', eventId })
  }
  return tracker.state()
}

/** Every grant, in order: each begins access anew for a customer who was erased before it. */
export function grantsOf(acts: readonly GrantAct[]): readonly GrantByHand[] {
  return [...acts]
    .filter(({ type }) => type === 'manual.granted')
    .sort(compareByTime)
    .map(({ createdAt: at, id: eventId }) => ({ at, eventId }))
}
