import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { openPostgresStore } from '../../src/store/postgres/store.js'
import { postgresAt } from '../world.js'

/** What an instance has, without a daemon. */
export async function storeAt(file: string, lease = 'recompute') {
  const store = await openPostgresStore(await postgresAt(file), DOCUMENTED_POLICY, (db) => ({
    close: () => db.destroy(),
  }))
  return { ...store, lease: store.lease(lease) }
}
