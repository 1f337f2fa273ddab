import { type Kysely, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkStatement } from './bulk.js'
import type { Database } from './schema.js'
import { getSetting, removeSetting, setSetting } from './settings.js'

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

/** The fact of a customer that names an account of theirs. */
export type AccountFact = 'communityId' | 'messengerId'

/** A platform account, and a customer to whom it belongs: it may belong to several. */
export interface LinkedAccount {
  readonly fact: AccountFact
  readonly accountId: string
  readonly customerId: string
}

interface LinkRow {
  readonly customer_id: string
  readonly community_id: string | null
  readonly messenger_id: string | null
}

const selectOfCustomers = bulkStatement(
  (keys) => sql<LinkRow>`
    select customer_id, community_id, messenger_id from customers where (environment, customer_id) in (${keys})`,
)

/** The accounts that belong to these customers now. */
export async function loadAccountsOf(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<readonly LinkedAccount[]> {
  const rows = await selectOfCustomers(
    db,
    customerIds.map((id) => [environment, id]),
  )
  return rows.flatMap((row) => [
    ...linkOf('communityId', row.community_id, row.customer_id),
    ...linkOf('messengerId', row.messenger_id, row.customer_id),
  ])
}

function linkOf(fact: AccountFact, accountId: string | null, customerId: string): LinkedAccount[] {
  return accountId === null ? [] : [{ fact, accountId, customerId }]
}

interface AccountRow {
  readonly account_id: string
  readonly customer_id: string
}

const SELECT_LINKED = {
  communityId: bulkStatement(
    (keys) => sql<AccountRow>`
      select community_id as account_id, customer_id from customers where (environment, community_id) in (${keys})
        and community_id is not null`,
  ),
  messengerId: bulkStatement(
    (keys) => sql<AccountRow>`
      select messenger_id as account_id, customer_id from customers where (environment, messenger_id) in (${keys})
        and messenger_id is not null`,
  ),
} as const satisfies Record<AccountFact, unknown>

/** All customers to whom these accounts belong. */
export async function loadLinkedCustomers(
  db: Kysely<Database>,
  environment: Environment,
  fact: AccountFact,
  accountIds: readonly string[],
): Promise<readonly LinkedAccount[]> {
  const rows = await SELECT_LINKED[fact](
    db,
    accountIds.map((id) => [environment, id]),
  )
  return rows.map((row) => ({ fact, accountId: row.account_id, customerId: row.customer_id }))
}

/**
 * Marks these customers, and everybody else to whom their accounts belong, too: what one of them loses, another may
 * still hold. In the transaction that takes the accounts away or gives them others, before it does.
 */
export async function markAccountHolders(
  trx: Transaction<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<void> {
  const accounts = await loadAccountsOf(trx, environment, customerIds)
  const holders = new Set(customerIds)
  for (const fact of ['communityId', 'messengerId'] as const) {
    const ids = accounts.filter((one) => one.fact === fact).map(({ accountId }) => accountId)
    for (const { customerId } of await loadLinkedCustomers(trx, environment, fact, [...new Set(ids)])) {
      holders.add(customerId)
    }
  }
  await markForSync(
    trx,
    [...holders].map((customerId) => ({ environment, customerId })),
  )
}

const selectActive = bulkStatement(
  (keys) => sql<{ readonly customer_id: string; readonly product_id: string }>`
    select customer_id, product_id from entitlements where (environment, customer_id) in (${keys}) and active = 1`,
)

/** The products that each has access to, as last written down; a customer without any is not in the map. */
export async function loadActiveProducts(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await selectActive(
    db,
    customerIds.map((id) => [environment, id]),
  )
  const found = new Map<string, string[]>()
  for (const row of rows) {
    found.set(row.customer_id, [...(found.get(row.customer_id) ?? []), row.product_id])
  }
  return found
}

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 1_000

/**
 * Marks the next customers who have an account.
 * @returns the last of them, after whom it goes on; null: those were all
 */
export async function markLinkedCustomers(
  trx: Transaction<Database>,
  after: SyncMark | null,
): Promise<SyncMark | null> {
  const rows = await trx
    .selectFrom('customers')
    .select(['environment', 'customer_id', 'community_id', 'messenger_id'])
    .where(
      sql<boolean>`(environment, customer_id) > (${after?.environment ?? ''}, ${after?.customerId ?? ''})`,
    )
    .orderBy('environment')
    .orderBy('customer_id')
    .limit(MAX_PER_TRANSACTION)
    .execute()
  const linked = rows.filter((row) => row.community_id !== null || row.messenger_id !== null)
  await markForSync(
    trx,
    linked.map((row) => ({ environment: row.environment, customerId: row.customer_id })),
  )
  const last = rows.at(-1)
  if (last === undefined || rows.length < MAX_PER_TRANSACTION) return null
  return { environment: last.environment, customerId: last.customer_id }
}

/** How far sync has taken in the change log, as `formatCursor` writes it. */
export const CURSOR_SETTING = 'sync_cursor'
/** Which products and targets what is desired was worked out for. */
const TARGETS_SETTING = 'sync_targets'
const PAUSED_SETTING = 'sync_paused'
const PAUSED_AT_SETTING = 'sync_paused_at'
const SWEPT_SETTING = 'sync_swept_at'

export interface SyncSettings {
  readonly cursor: string | null
  readonly targets: string | null
  readonly paused: boolean
  /** When the newest sweep began, in epoch milliseconds. */
  readonly sweptAt: number | null
}

export async function loadSyncSettings(db: Kysely<Database>): Promise<SyncSettings> {
  const sweptAt = await getSetting(db, SWEPT_SETTING)
  return {
    cursor: await getSetting(db, CURSOR_SETTING),
    targets: await getSetting(db, TARGETS_SETTING),
    paused: await isSyncPaused(db),
    sweptAt: sweptAt === null ? null : Number(sweptAt),
  }
}

export async function isSyncPaused(db: Kysely<Database>): Promise<boolean> {
  return (await getSetting(db, PAUSED_SETTING)) === '1'
}

/** No call to a platform is begun while it is paused. */
export async function setSyncPaused(trx: Transaction<Database>, paused: boolean, now: number): Promise<void> {
  if (!paused) await removeSetting(trx, PAUSED_AT_SETTING)
  else if (!(await isSyncPaused(trx))) await setSetting(trx, PAUSED_AT_SETTING, String(now))
  await setSetting(trx, PAUSED_SETTING, paused ? '1' : '0')
}

/** Since when it is paused, in epoch milliseconds; null: it is not, or an older version paused it. */
export async function loadPausedAt(db: Kysely<Database>): Promise<number | null> {
  const at = await getSetting(db, PAUSED_AT_SETTING)
  return at === null ? null : Number(at)
}

/** @param at when it began, in epoch milliseconds */
export function setSweptAt(trx: Transaction<Database>, at: number): Promise<void> {
  return setSetting(trx, SWEPT_SETTING, String(at))
}

/** Everybody is marked who has an account: from here on the change log tells of the rest. */
export async function settleSyncTargets(
  trx: Transaction<Database>,
  { targets, cursor }: { readonly targets: string; readonly cursor: string },
): Promise<void> {
  await setSetting(trx, TARGETS_SETTING, targets)
  await setSetting(trx, CURSOR_SETTING, cursor)
}

/** Where groups went that got another id, by the id that the config has. */
export async function loadMovedGroups(db: Kysely<Database>): Promise<ReadonlyMap<string, string>> {
  const rows = await db.selectFrom('moved_groups').selectAll().execute()
  return new Map(rows.map((row) => [row.group_id, row.moved_to]))
}

export async function keepMovedGroup(
  trx: Transaction<Database>,
  { groupId, movedTo }: { readonly groupId: string; readonly movedTo: string },
): Promise<void> {
  await trx
    .insertInto('moved_groups')
    .values({ group_id: groupId, moved_to: movedTo })
    .onConflict((conflict) => conflict.column('group_id').doUpdateSet({ moved_to: movedTo }))
    .execute()
}

/** One account in one group, by the id that the config has. */
interface GroupAccount {
  readonly groupId: string
  readonly accountId: string
}

/** Whether a ban of Latchkey's own may stand, which a removal did not get to lift. */
export async function isUnbanOwed(
  db: Kysely<Database>,
  { groupId, accountId }: GroupAccount,
): Promise<boolean> {
  const row = await db
    .selectFrom('owed_unbans')
    .select('group_id')
    .where('group_id', '=', groupId)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row !== undefined
}

export async function oweUnban(
  trx: Transaction<Database>,
  { groupId, accountId }: GroupAccount,
): Promise<void> {
  await trx
    .insertInto('owed_unbans')
    .values({ group_id: groupId, account_id: accountId })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function settleUnban(
  trx: Transaction<Database>,
  { groupId, accountId }: GroupAccount,
): Promise<void> {
  await trx
    .deleteFrom('owed_unbans')
    .where('group_id', '=', groupId)
    .where('account_id', '=', accountId)
    .execute()
}
