import { type Kysely, sql, type Transaction } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkLookup } from './bulk.js'
import type { StoredSourceKey } from './keys.js'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'
import type { WalkPlace } from './source-walk.js'

const SETTING = 'rebuild'

/**
 * A rebuild under way, or interrupted. What it has found by then is in `next_sources` and `next_dispositions`: of what
 * comes after its place, nothing is.
 */
export interface RebuildProgress {
  readonly policy: Policy
  /** Where to go on folding; null: every source has been, and only what is marked since is left. */
  readonly place: WalkPlace | null
  readonly folded: number
}

/** Null where no rebuild is under way. */
export async function loadRebuildProgress(db: Kysely<Database>): Promise<RebuildProgress | null> {
  const stored = await getSetting(db, SETTING)
  return stored === null ? null : (JSON.parse(stored) as RebuildProgress)
}

export function saveRebuildProgress(trx: Transaction<Database>, progress: RebuildProgress): Promise<void> {
  return setSetting(trx, SETTING, JSON.stringify(progress))
}

/** Forgets a rebuild, finished or not, and all that it had found. */
export async function clearRebuild(trx: Transaction<Database>): Promise<void> {
  await trx.deleteFrom('settings').where('key', '=', SETTING).execute()
  await trx.deleteFrom('next_sources').execute()
  await trx.deleteFrom('next_dispositions').execute()
  await trx.deleteFrom('rebuild_marks').execute()
}

const insertMarks = bulkInsert(
  'rebuild_marks',
  ['environment', 'kind', 'source_id'],
  sql`on conflict do nothing`,
)

/** Whoever writes a source says so here; where no rebuild is under way, nothing is kept of it. */
export async function markTouched(
  trx: Transaction<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<void> {
  if (keys.length === 0 || (await getSetting(trx, SETTING)) === null) return
  await insertMarks(
    trx,
    keys.map(({ kind, id }) => ({ environment, kind, source_id: id })),
  )
}

export async function loadMarks(db: Kysely<Database>, limit: number): Promise<readonly StoredSourceKey[]> {
  const rows = await db.selectFrom('rebuild_marks').selectAll().limit(limit).execute()
  return rows.map(({ environment, kind, source_id: id }) => ({ environment, kind, id }))
}

const removeMarks = bulkLookup(
  ['environment', 'kind', 'source_id'],
  (isTold) => sql`delete from rebuild_marks where ${isTold}`,
)

export async function clearMarks(
  trx: Transaction<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<void> {
  await removeMarks(
    trx,
    keys.map(({ kind, id }) => [environment, kind, id]),
  )
}
