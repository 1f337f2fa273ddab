import type { Kysely } from 'kysely'
import { loadPlanned, type TargetRef } from '../store/memberships.js'
import type { Database } from '../store/schema.js'
import { isHeld, planHash, type RemovalBound } from './removal-bound.js'
import type { PlannedCall, SyncPlan } from './sync.js'

/** How many memberships are read at once. */
const CHUNK = 1_000

export interface PlanQuestion {
  readonly targets: readonly TargetRef[]
  readonly bound: RemovalBound
  readonly paused: boolean
  /** Epoch milliseconds. */
  readonly now: number
}

/** Every call that is to be made, now or after a failure; what is parked is not among them. */
export async function readPlan(
  db: Kysely<Database>,
  { targets, bound, paused, now }: PlanQuestion,
): Promise<SyncPlan> {
  const calls: PlannedCall[] = []
  for (const target of targets) {
    const held = await isHeld(db, target, bound, now)
    let after = ''
    let planned: Awaited<ReturnType<typeof loadPlanned>>
    do {
      planned = await loadPlanned(db, target, after, CHUNK)
      after = planned.at(-1)?.accountId ?? after
      for (const { environment, target: key, accountId, customerId, desired, confirmed } of planned) {
        calls.push({
          environment,
          target: key,
          accountId,
          customerId,
          action: desired ? 'give' : 'take',
          needsConfirmation: held && !desired && !confirmed,
        })
      }
    } while (planned.length === CHUNK)
  }
  return { paused, hash: planHash(calls.filter(({ needsConfirmation }) => needsConfirmation)), calls }
}
