import { sql } from 'kysely'
import type { AccountFact } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkLookup, inEnvironment } from './bulk.js'
import type { Db, PersonKey, Tx } from './schema.js'
import { getSetting, setSetting } from './settings.js'

const insertMarks = bulkInsert('sync_marks')

/**
 * Has memberships computed again, for a reason other than a change of access. A customer may be marked several times.
 */
export async function markForSync(trx: Tx, marks: readonly PersonKey[]): Promise<void> {
  const rows = marks.map(({ environment, customerId }) => ({ environment, customer_id: customerId }))
  await insertMarks(trx, rows)
}

/** The oldest marks; `seqs` is for `unmarkForSync`. */
export async function loadSyncMarks(db: Db, limit: number) {
  const rows = await db.selectFrom('sync_marks').selectAll().orderBy('seq').limit(limit).execute()
  const marks = rows.map((row) => ({ environment: row.environment, customerId: row.customer_id }))
  return { marks, seqs: rows.map(({ seq }) => seq) }
}

const deleteMarks = bulkLookup(['seq'], sql`delete from sync_marks where`)

/** Other marks of the same customers stay, also with lower numbers: some are committed later. */
export async function unmarkForSync(trx: Tx, seqs: readonly number[]): Promise<void> {
  await deleteMarks(
    trx,
    seqs.map((seq) => [seq]),
  )
}

/** A platform account and one of its customers; it may have several. */
export interface LinkedAccount {
  readonly fact: AccountFact
  readonly accountId: string
  readonly customerId: string
}

/** All customers with these accounts. */
export const loadAccountHolders = inEnvironment(
  bulkLookup(
    ['environment', 'name', 'value'],
    sql<LinkedAccount>`
      select name as "fact", value as "accountId", customer_id as "customerId" from customer_lookups where`,
  ),
  ({ fact, accountId }: Pick<LinkedAccount, 'fact' | 'accountId'>) => [fact, accountId],
)

/** Bounds how long one transaction blocks deliveries. */
const MAX_MARKED = 1_000

/** Where a walk over the holders of one kind of account continues; empty texts: at its beginning. */
export interface AccountPlace extends LinkedAccount {
  readonly environment: Environment
}

/**
 * Marks the next customers with an account.
 * @returns where to continue; null: at the end
 */
export async function markLinkedCustomers(
  trx: Tx,
  { environment, fact, accountId, customerId }: AccountPlace,
): Promise<AccountPlace | null> {
  const { rows } = await sql<Pick<AccountPlace, 'accountId' | 'customerId'>>`
    select value as "accountId", customer_id as "customerId" from customer_lookups
    where environment = ${environment} and name = ${fact} and (value, customer_id) > (${accountId}, ${customerId})
    order by value, customer_id limit ${MAX_MARKED}`.execute(trx)
  const marks = rows.map(({ customerId }) => ({ environment, customerId }))
  await markForSync(trx, marks)
  const last = rows.at(-1)
  return last === undefined || rows.length < MAX_MARKED ? null : { environment, fact, ...last }
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

export async function loadSyncSettings(db: Db): Promise<SyncSettings> {
  const stored = await getSetting(db, SETTING)
  return stored === null ? NONE : (JSON.parse(stored) as SyncSettings)
}

/** Changes these settings and leaves the others. */
export async function saveSyncSettings(trx: Tx, changed: Partial<SyncSettings>): Promise<void> {
  await setSetting(trx, SETTING, JSON.stringify({ ...(await loadSyncSettings(trx)), ...changed }))
}

export async function isSyncPaused(db: Db): Promise<boolean> {
  return (await loadSyncSettings(db)).pausedAt !== null
}

/** Pausing again keeps the first time. */
export async function setSyncPaused(trx: Tx, paused: boolean, now: number): Promise<void> {
  const { pausedAt } = await loadSyncSettings(trx)
  await saveSyncSettings(trx, { pausedAt: paused ? (pausedAt ?? now) : null })
}
