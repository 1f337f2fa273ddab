import type { Config } from '../config/types.js'
import type { Policy } from '../entitlements/policy.js'
import { loadPolicy } from '../store/policy.js'
import { loadJob } from '../store/recompute-job.js'
import { readStore } from './read-store.js'

export interface StoredPolicy {
  /** Null: no daemon has settled one yet. */
  readonly inForce: Policy | null
  /** Whether a rebuild has begun, and not ended: sources may still be folded under another policy. */
  readonly isUnfinished: boolean
}

/** The policy that the configured database stands under. */
export function readPolicy(config: Config): Promise<StoredPolicy> {
  return readStore(config, async (db) => ({
    inForce: await loadPolicy(db),
    isUnfinished: (await loadJob(db))?.endpoints === null,
  }))
}
