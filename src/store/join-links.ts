import type { Kysely, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import type { Database } from './schema.js'
import type { JoinLinksTable } from './sync-schema.js'

/** `token`: links an account, once. `invite`: leads to a group. */
export type JoinLinkKind = JoinLinksTable['kind']

/** A link that was made for one customer. Of the link itself only the hash is kept, in hex. */
export interface NewJoinLink {
  readonly kind: JoinLinkKind
  readonly sha256: string
  readonly environment: Environment
  readonly customerId: string
  /** Epoch milliseconds. */
  readonly expiresAt: number
}

export interface JoinLinkUse {
  readonly kind: JoinLinkKind
  readonly sha256: string
  readonly accountId: string
  /** When the link was followed, in epoch milliseconds. */
  readonly at: number
}

export type JoinLinkOwner = Pick<NewJoinLink, 'environment' | 'customerId'>

/** Expired links are kept for this long: news of what was done with them in time may come late. */
const KEPT_AFTER_END_MS = 7 * 86_400_000

/** Takes the place of those long expired. */
export async function keepJoinLink(
  trx: Transaction<Database>,
  { kind, sha256, environment, customerId, expiresAt }: NewJoinLink,
  now: number,
): Promise<void> {
  await trx
    .deleteFrom('join_links')
    .where('expires_at', '<', now - KEPT_AFTER_END_MS)
    .execute()
  const row = { sha256, kind, environment, customer_id: customerId, expires_at: expiresAt, used_by: null }
  await trx.insertInto('join_links').values(row).execute()
}

/**
 * The customer whom the link was made for, if this is its first use, in time. The same account may come again and gets
 * the same answer, since what follows from it may not have been done.
 */
export async function takeJoinLink(
  trx: Transaction<Database>,
  { kind, sha256, accountId, at }: JoinLinkUse,
): Promise<JoinLinkOwner | null> {
  const row = await trx
    .updateTable('join_links')
    .set({ used_by: accountId })
    .where('sha256', '=', sha256)
    .where('kind', '=', kind)
    .where('expires_at', '>', at)
    .where((is) => is.or([is('used_by', 'is', null), is('used_by', '=', accountId)]))
    .returning(['environment', 'customer_id'])
    .executeTakeFirst()
  return row === undefined ? null : { environment: row.environment, customerId: row.customer_id }
}

/** Whether somebody has used it already; false for one that is not known. */
export async function isJoinLinkUsed(
  db: Kysely<Database>,
  { kind, sha256 }: Pick<JoinLinkUse, 'kind' | 'sha256'>,
): Promise<boolean> {
  const row = await db
    .selectFrom('join_links')
    .select('used_by')
    .where('sha256', '=', sha256)
    .where('kind', '=', kind)
    .executeTakeFirst()
  return row !== undefined && row.used_by !== null
}

/** Every link that was made for a customer: none leads to them any more. */
export async function forgetJoinLinks(
  trx: Transaction<Database>,
  environment: Environment,
  customerId: string,
): Promise<void> {
  await trx
    .deleteFrom('join_links')
    .where('environment', '=', environment)
    .where('customer_id', '=', customerId)
    .execute()
}
