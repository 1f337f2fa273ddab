import { type Kysely, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkLookup } from './bulk.js'
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

const markSharers = bulkLookup(
  ['environment', 'customer_id'],
  (isTheirs) => sql`
    with own as (select * from customers where ${isTheirs})
    insert into sync_marks (environment, customer_id)
    select other.environment, other.customer_id from own join customers as other
      on other.environment = own.environment and other.community_id = own.community_id
    where other.customer_id <> own.customer_id
    union select other.environment, other.customer_id from own join customers as other
      on other.environment = own.environment and other.messenger_id = own.messenger_id
    where other.customer_id <> own.customer_id`,
)

/**
 * Marks these customers and everybody who shares an account with them: one may keep a membership that another loses.
 * Runs in the transaction that changes their accounts, before the change.
 */
export async function markAccountHolders(
  trx: Transaction<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<void> {
  await markForSync(
    trx,
    customerIds.map((customerId) => ({ environment, customerId })),
  )
  await markSharers(
    trx,
    customerIds.map((customerId) => [environment, customerId]),
  )
}

/** Bounds how long one transaction blocks deliveries. */
const MAX_PER_TRANSACTION = 1_000

/**
 * Marks the next customers with an account.
 * @returns where to continue; null: at the end
 */
export async function markLinkedCustomers(
  trx: Transaction<Database>,
  after: SyncMark | null,
): Promise<SyncMark | null> {
  const { rows } = await sql<SyncMark & { readonly hasAccount: number }>`
    select environment, customer_id as "customerId", coalesce(community_id, messenger_id) is not null as "hasAccount"
    from customers where (environment, customer_id) > (${after?.environment ?? ''}, ${after?.customerId ?? ''})
    order by environment, customer_id limit ${MAX_PER_TRANSACTION}`.execute(trx)
  await markForSync(
    trx,
    rows.filter(({ hasAccount }) => hasAccount),
  )
  const last = rows.at(-1)
  if (last === undefined || rows.length < MAX_PER_TRANSACTION) return null
  return { environment: last.environment, customerId: last.customerId }
}

/** The customer fact that holds an account. */
export type AccountFact = 'communityId' | 'messengerId'

/** A platform account and one of its customers; it may have several. */
export interface LinkedAccount {
  readonly fact: AccountFact
  readonly accountId: string
  readonly customerId: string
}

const COLUMN = { communityId: 'community_id', messengerId: 'messenger_id' } as const

/** All customers with these accounts. */
export async function loadAccountHolders(
  db: Kysely<Database>,
  environment: Environment,
  fact: AccountFact,
  accountIds: readonly string[],
): Promise<readonly LinkedAccount[]> {
  const column = sql.ref(COLUMN[fact])
  const { rows } = await sql<Omit<LinkedAccount, 'fact'>>`
    select ${column} as "accountId", customer_id as "customerId" from customers
    where environment = ${environment} and ${column} in (${sql.join(accountIds)})`.execute(db)
  return rows.map((row) => ({ fact, ...row }))
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
