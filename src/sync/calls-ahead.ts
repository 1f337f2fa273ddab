import type { Kysely } from 'kysely'
import { loadTargetRefs } from '../store/membership-lists.js'
import type { Database } from '../store/schema.js'
import type { WriteSync } from '../store/sync-writes.js'
import { createAbsorb } from './absorb.js'
import { createMembershipReasons } from './membership-reasons.js'
import { readPlan } from './read-plan.js'
import type { RemovalBound } from './removal-bound.js'
import type { PlannedCall, SyncedProduct } from './sync.js'
import { targetsOf } from './targets.js'

export interface CallsAheadDeps {
  /** Reads. */
  readonly db: Kysely<Database>
  readonly writeSync: WriteSync
  readonly products: readonly SyncedProduct[]
  readonly bound: RemovalBound
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/** What would be called for a store as it stands, on one that nobody drives: takes in what has changed, and calls nobody. */
export function createCallsAhead(deps: CallsAheadDeps): () => Promise<readonly PlannedCall[]> {
  const { db, writeSync, products, bound, clock } = deps
  const absorb = createAbsorb({
    db,
    writeSync,
    products: () => products,
    reasons: createMembershipReasons(),
    onAbsorbed: () => {},
  })
  return async () => {
    await absorb()
    const targets = targetsOf(products, await loadTargetRefs(db))
    return (await readPlan(db, { targets, bound, paused: false, now: clock() })).calls
  }
}
