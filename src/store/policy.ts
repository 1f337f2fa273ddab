import { isDeepStrictEqual } from 'node:util'
import type { Kysely } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'

const SETTING = 'policy'

export interface PolicyInForce {
  readonly policy: Policy
  /** Whether the configured policy is another one, and so does not apply. */
  readonly differs: boolean
}

/**
 * The policy that the stored state was folded under. A configured one takes effect by itself only while there
 * is nothing stored that it could change: no source may mix two policies.
 */
export function policyInForce(db: Kysely<Database>, configured: Policy): Promise<PolicyInForce> {
  return db.transaction().execute(async (trx) => {
    const stored = await getSetting(trx, SETTING)
    const anyEvent = await trx.selectFrom('events').select('seq').limit(1).executeTakeFirst()
    if (stored !== null && anyEvent !== undefined) {
      const policy = JSON.parse(stored) as Policy
      return { policy, differs: !isDeepStrictEqual(policy, configured) }
    }
    await setSetting(trx, SETTING, JSON.stringify(configured))
    return { policy: configured, differs: false }
  })
}
