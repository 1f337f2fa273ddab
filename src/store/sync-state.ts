import type { Kysely, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkInsert } from './bulk.js'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'

/** A customer whose memberships must be computed again, for a reason other than a change of access. */
export interface SyncMark {
  readonly environment: Environment
  readonly customerId: string
}

const insertMarks = bulkInsert('sync_marks')

/** A customer may be marked several times. */
export async function markForSync(trx: Transaction<Database>, marks: readonly SyncMark[]): Promise<void> {
  await insertMarks(
    trx,
    marks.map(({ environment, customerId }) => ({ environment, customer_id: customerId })),
  )
}

/** The oldest marks; `upTo` is for `unmarkForSync`. */
export async function loadSyncMarks(
  db: Kysely<Database>,
  limit: number,
): Promise<{ readonly marks: readonly SyncMark[]; readonly upTo: number }> {
  const rows = await db.selectFrom('sync_marks').selectAll().orderBy('seq').limit(limit).execute()
  const marks = rows.map((row) => ({ environment: row.environment, customerId: row.customer_id }))
  return { marks, upTo: rows.at(-1)?.seq ?? 0 }
}

/** Newer marks of the same customers stay. */
export async function unmarkForSync(trx: Transaction<Database>, upTo: number): Promise<void> {
  await trx.deleteFrom('sync_marks').where('seq', '<=', upTo).execute()
}

/** The state of sync that survives a restart. Instants are epoch milliseconds. */
export interface SyncSettings {
  /** How far sync has read the change log (`formatCursor`). */
  readonly cursor: string | null
  /** Identifies the products and targets of the last full computation. */
  readonly targets: string | null
  /** Since when sync is paused. */
  readonly pausedAt: number | null
  /** When the newest sweep began. */
  readonly sweptAt: number | null
}

const SETTING = 'sync'
const NONE: SyncSettings = { cursor: null, targets: null, pausedAt: null, sweptAt: null }

export async function loadSyncSettings(db: Kysely<Database>): Promise<SyncSettings> {
  const stored = await getSetting(db, SETTING)
  return stored === null ? NONE : (JSON.parse(stored) as SyncSettings)
}

/** Changes these settings and leaves the others. */
export async function saveSyncSettings(
  trx: Transaction<Database>,
  changed: Partial<SyncSettings>,
): Promise<void> {
  await setSetting(trx, SETTING, JSON.stringify({ ...(await loadSyncSettings(trx)), ...changed }))
}

export async function isSyncPaused(db: Kysely<Database>): Promise<boolean> {
  return (await loadSyncSettings(db)).pausedAt !== null
}

/** Pausing again keeps the first time. */
export async function setSyncPaused(trx: Transaction<Database>, paused: boolean, now: number): Promise<void> {
  const { pausedAt } = await loadSyncSettings(trx)
  await saveSyncSettings(trx, { pausedAt: paused ? (pausedAt ?? now) : null })
}
