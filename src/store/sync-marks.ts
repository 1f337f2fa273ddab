import { type Kysely, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkStatement } from './bulk.js'
import type { Database } from './schema.js'

/** A customer whose memberships are to be looked at again, for another reason than a change of access. */
export interface SyncMark {
  readonly environment: Environment
  readonly customerId: string
}

/** A mark as it was read: marked once more since, it is another. */
export interface ReadSyncMark extends SyncMark {
  readonly version: number
}

const mark = bulkInsert(
  'sync_marks',
  ['environment', 'customer_id'],
  sql`on conflict do update set version = version + 1`,
)

/** In the transaction that changes which platform accounts belong to these customers. */
export function markForSync(trx: Transaction<Database>, marks: readonly SyncMark[]): Promise<void> {
  return mark(
    trx,
    marks.map(({ environment, customerId }) => ({ environment, customer_id: customerId })),
  )
}

/** Any of them, at most `limit`. */
export async function loadSyncMarks(db: Kysely<Database>, limit: number): Promise<readonly ReadSyncMark[]> {
  const rows = await db.selectFrom('sync_marks').selectAll().limit(limit).execute()
  return rows.map((row) => ({
    environment: row.environment,
    customerId: row.customer_id,
    version: row.version,
  }))
}

const unmark = bulkStatement(
  (keys) => sql`delete from sync_marks where (environment, customer_id, version) in (${keys})`,
)

/** Those that were marked again since they were read stay. */
export async function unmarkForSync(
  trx: Transaction<Database>,
  marks: readonly ReadSyncMark[],
): Promise<void> {
  await unmark(
    trx,
    marks.map(({ environment, customerId, version }) => [environment, customerId, version]),
  )
}
