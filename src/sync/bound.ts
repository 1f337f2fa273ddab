import { countMembers, countUnconfirmed, type TargetRef } from '../store/memberships.js'
import type { Db } from '../store/schema.js'

/** If more removals from a target than both of these are pending, they wait for an operator. */
export interface RemovalBound {
  readonly atMost: number
  /** Percentage of the target's members. */
  readonly percent: number
}

/** Removals of the last hour count too, since a community may also be emptied slowly. */
const WINDOW_MS = 3_600_000

/**
 * Whether the unconfirmed removals from a target have to wait. All pending ones count, so either all of them may be
 * made or none.
 */
export async function isHeld(db: Db, target: TargetRef, { atMost, percent }: RemovalBound, now: number) {
  const pending = await countUnconfirmed(db, target)
  if (pending === 0) return false
  const { members, removed, removedUnconfirmed } = await countMembers(db, target, now - WINDOW_MS)
  const removals = pending + removedUnconfirmed
  return removals > atMost && removals > ((members + removed) * percent) / 100
}
