import { sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import type { Db, JoinLinksTable, PersonKey, Tx } from './schema.js'

/** Identifies a link: its kind, and the hash of its text in hex, since only that is stored. */
export type JoinLinkKey = Pick<JoinLinksTable, 'kind' | 'sha256'>

export interface NewJoinLink extends JoinLinkKey, PersonKey {
  /** Epoch milliseconds. */
  readonly expiresAt: number
}

/** Expired links are kept this long: news of their use may come late. */
const KEPT_AFTER_END_MS = 7 * 86_400_000

/** Saves a link, and deletes those that expired long ago. */
export async function keepJoinLink(
  trx: Tx,
  { kind, sha256, environment, customerId, expiresAt }: NewJoinLink,
  now: number,
): Promise<void> {
  await sql`delete from join_links where expires_at < ${now - KEPT_AFTER_END_MS}`.execute(trx)
  const row = { sha256, kind, environment, customer_id: customerId, expires_at: expiresAt, used_by: null }
  await trx.insertInto('join_links').values(row).execute()
}

/**
 * The customer of an unexpired link at its first use; null for any other. The same account may come again and gets the
 * same answer, since the work that follows may have been interrupted. `at`: when the link was followed, in epoch milliseconds.
 * An account is never noted beside a customer who is erased.
 */
export async function takeJoinLink(
  trx: Tx,
  { kind, sha256, accountId, at }: JoinLinkKey & { readonly accountId: string; readonly at: number },
) {
  const { rows } = await sql<PersonKey>`
    update join_links set used_by = ${accountId}
    where sha256 = ${sha256} and kind = ${kind} and expires_at > ${at} and coalesce(used_by, ${accountId}) = ${accountId}
      and not exists (select 1 from erasures
        where erasures.environment = join_links.environment and erasures.customer_id = join_links.customer_id)
    returning environment, customer_id as "customerId"`.execute(trx)
  return rows[0] ?? null
}

/** False for an unknown link, too. */
export async function isJoinLinkUsed(db: Db, { kind, sha256 }: JoinLinkKey): Promise<boolean> {
  const { rows } = await sql`
    select 1 from join_links where sha256 = ${sha256} and kind = ${kind} and used_by is not null`.execute(db)
  return rows.length > 0
}

export async function forgetJoinLinks(trx: Tx, environment: Environment, customerId: string): Promise<void> {
  await sql`delete from join_links
    where environment = ${environment} and customer_id = ${customerId}`.execute(trx)
}

/** The new ids of groups that became supergroups, by the id in the config. */
export async function loadMovedGroups(db: Db): Promise<ReadonlyMap<string, string>> {
  const rows = await db.selectFrom('moved_groups').selectAll().execute()
  return new Map(rows.map((row) => [row.group_id, row.moved_to]))
}

export async function keepMovedGroup(
  trx: Tx,
  { groupId, movedTo }: { readonly groupId: string; readonly movedTo: string },
): Promise<void> {
  await sql`
    insert into moved_groups (group_id, moved_to) values (${groupId}, ${movedTo})
    on conflict (group_id) do update set moved_to = excluded.moved_to`.execute(trx)
}

/** One account in one group, by the id in the config. */
export interface GroupAccount {
  readonly groupId: string
  readonly accountId: string
}

/** Whether Latchkey may have banned the account and not lifted the ban yet. */
export async function isUnbanOwed(db: Db, { groupId, accountId }: GroupAccount): Promise<boolean> {
  const { rows } = await sql`
    select 1 from owed_unbans where group_id = ${groupId} and account_id = ${accountId}`.execute(db)
  return rows.length > 0
}

export async function setUnbanOwed(
  trx: Tx,
  { isOwed, groupId, accountId }: GroupAccount & { readonly isOwed: boolean },
): Promise<void> {
  const change = isOwed
    ? sql`insert into owed_unbans (group_id, account_id) values (${groupId}, ${accountId}) on conflict do nothing`
    : sql`delete from owed_unbans where group_id = ${groupId} and account_id = ${accountId}`
  await change.execute(trx)
}
