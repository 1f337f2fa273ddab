import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { compareText } from '../entitlements/order.js'
import type { MembershipKey } from '../store/membership.js'
import { countRemovals, type TargetRef } from '../store/memberships.js'
import type { Database } from '../store/schema.js'

/** More removals from a target than both wait for an operator. */
export interface RemovalBound {
  readonly atMost: number
  /** Of the target's members. */
  readonly percent: number
}

/** What was removed within this time counts with what waits: an empty community may come by trickling, too. */
const WINDOW_MS = 3_600_000

/**
 * Whether no removal from a target may be made that nobody has agreed to. All that waits counts, so that either all of
 * it may be made or none.
 */
export async function isHeld(
  db: Kysely<Database>,
  target: TargetRef,
  { atMost, percent }: RemovalBound,
  now: number,
): Promise<boolean> {
  const { pending, made, members } = await countRemovals(db, target, now - WINDOW_MS)
  const removals = pending + made
  return pending > 0 && removals > atMost && removals > (members * percent) / 100
}

/** Stands for exactly these removals, in whatever order they are told; null: there are none. */
export function planHash(removals: readonly MembershipKey[]): string | null {
  if (removals.length === 0) return null
  const lines = removals.map(({ environment, target, accountId }) =>
    JSON.stringify([environment, target, accountId]),
  )
  return createHash('sha256').update(lines.sort(compareText).join('\n')).digest('hex')
}
