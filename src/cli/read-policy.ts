import type { Config } from '../config/types.js'
import type { Policy } from '../entitlements/policy.js'
import { loadPolicy } from '../store/policy.js'
import { loadRebuildProgress } from '../store/rebuild-progress.js'
import { readStore } from './read-store.js'

export interface StoredPolicy {
  /** Null: no daemon has settled one yet. */
  readonly inForce: Policy | null
  /** Whether a rebuild has begun, under this or another policy, and not ended. */
  readonly isUnfinished: boolean
}

/** The policy that the configured database stands under. */
export function readPolicy(config: Config): Promise<StoredPolicy> {
  return readStore(config, async (db) => ({
    inForce: await loadPolicy(db),
    isUnfinished: (await loadRebuildProgress(db)) !== null,
  }))
}
