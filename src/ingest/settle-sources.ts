import type { Transaction } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import type { Environment } from '../provider/event.js'
import { setDispositions } from '../store/events.js'
import { sourceKey } from '../store/keys.js'
import type { Database } from '../store/schema.js'
import { deleteSources, loadSources, saveSources } from '../store/sources.js'
import { foldAnew } from './fold-anew.js'
import { refreshAllDue } from './refresh-due.js'
import { rewriteAccess } from './rewrite-access.js'

/**
 * Folds sources from nothing but their stored events, and puts the result in the place of what stands, with
 * everything that follows from it. Writes only what differs.
 */
export async function settleSources(
  trx: Transaction<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
  policy: Policy,
  now: number,
): Promise<void> {
  const { sources, dispositions } = await foldAnew(trx, environment, keys, policy)
  await setDispositions(trx, environment, dispositions)
  if (sources.length === 0) return
  // What the clock has changed is told as that, not as the replay's.
  await refreshAllDue(trx, now)
  const standing = await loadSources(
    trx,
    environment,
    sources.map(({ key }) => key),
  )
  const present = sources.flatMap(({ folded }) => folded ?? [])
  await saveSources(trx, environment, present, standing)
  await deleteSources(
    trx,
    environment,
    sources.filter(({ folded }) => folded === null).map(({ key }) => key),
  )
  const customerIds = sources.flatMap(({ key, folded }) => [
    folded?.state.customerId ?? [],
    standing.get(sourceKey(key))?.state.customerId ?? [],
  ])
  await rewriteAccess(trx, environment, [...new Set(customerIds.flat())], now)
}
