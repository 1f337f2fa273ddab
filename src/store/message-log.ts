/* The log of the outbound webhooks: each message, and the attempts to deliver it. */

import { type Selectable, sql } from 'kysely'
import type { ChangeType } from '../entitlements/entitlement.js'
import type { Environment } from '../provider/event.js'
import { allOf } from './bulk.js'
import { committedChanges } from './changes.js'
import type { Db, MessagesTable, PersonKey, Tx } from './schema.js'

export interface MessageKey {
  /** Of the change. */
  readonly cursor: number
  /** The id of the address. */
  readonly webhook: string
}

export interface Attempt {
  /** Epoch milliseconds. */
  readonly at: number
  /** Null if there was no answer. */
  readonly status: number | null
  /** Why there was no answer; null: there was one. */
  readonly error: string | null
  readonly ms: number
}

/** The same at every attempt and address: receivers drop duplicates by it. The signature scheme allows no full stop. */
export function messageIdOf(epoch: string, cursor: number): string {
  return `msg_${epoch}_${cursor}`
}

/** `failed`: given up. */
export type MessageStatus = 'pending' | 'delivered' | 'failed'

const STORED_AS = {
  pending: ['pending'],
  delivered: ['delivered'],
  failed: ['gone', 'given_up'],
} as const satisfies Record<MessageStatus, readonly Selectable<MessagesTable>['status'][]>

export interface MessageFilter {
  readonly environments: readonly Environment[]
  readonly ids?: readonly string[]
  readonly webhooks?: readonly string[]
  readonly type?: ChangeType
  readonly customerId?: string
  readonly status?: MessageStatus
  /** Changes from then on, before `to`; epoch milliseconds. */
  readonly from?: number
  readonly to?: number
}

export interface MessagePage {
  readonly order: 'newest first' | 'oldest first'
  /** The page begins after it. */
  readonly after?: MessageKey
  readonly limit: number
}

/** A message in the log. Instants are epoch milliseconds. */
export interface LoggedMessage extends MessageKey, PersonKey {
  readonly id: string
  readonly type: ChangeType
  readonly productId: string
  readonly status: MessageStatus
  /** Why it failed. */
  readonly reason: 'gone' | 'given_up' | null
  readonly queuedAt: number
  /** Null: it is not pending, or waits for an earlier message of its customer. */
  readonly nextAttemptAt: number | null
  /** The newest ones, oldest first. */
  readonly attempts: readonly Attempt[]
}

/** The messages of the log that match, in the order of the change log or its reverse. */
export async function findMessages(
  db: Db,
  { environments, ids, webhooks, type, customerId, status, from, to }: MessageFilter,
  { order, after, limit }: MessagePage,
): Promise<readonly LoggedMessage[]> {
  const [beyond, direction] = order === 'newest first' ? [sql`<`, sql`desc`] : [sql`>`, sql`asc`]
  const isAsked = allOf(
    sql`messages.environment in (${sql.join(environments)})`,
    ids && sql`messages.cursor in (${sql.join(ids.map(numberOfMessage))})`,
    ids && sql`'msg_' || epoch || '_' || messages.cursor in (${sql.join(ids)})`,
    webhooks && sql`webhook in (${sql.join(webhooks)})`,
    type && sql`type = ${type}`,
    customerId === undefined ? undefined : sql`messages.customer_id = ${customerId}`,
    status && sql`status in (${sql.join(STORED_AS[status])})`,
    from === undefined ? undefined : sql`at >= ${from}`,
    to === undefined ? undefined : sql`at < ${to}`,
    after && sql`(messages.cursor, webhook) ${beyond} (${after.cursor}, ${after.webhook})`,
  )
  const { rows } = await sql<Omit<LoggedMessage, 'id' | 'attempts'> & Record<'epoch' | 'log', string>>`
    select messages.cursor, webhook, epoch, type, messages.environment, messages.customer_id as "customerId",
      product_id as "productId", case when ${HAS_FAILED} then 'failed' else status end as status,
      case when ${HAS_FAILED} then status end as reason, queued_at as "queuedAt",
      next_attempt_at as "nextAttemptAt", attempt_log as log
    from messages join ${committedChanges(db)} on changes.cursor = messages.cursor where ${isAsked}
    order by messages.cursor ${direction}, webhook ${direction} limit ${limit}`.execute(db)
  return rows.map(({ epoch, log, ...row }) => {
    return { ...row, id: messageIdOf(epoch, row.cursor), attempts: JSON.parse(log) as Attempt[] }
  })
}

export const HAS_FAILED = sql`status in ('gone', 'given_up')`

/** Of its change; 0 if it is no id of a message. */
function numberOfMessage(id: string): number {
  return Number(/^msg_\w+_(\d{1,16})$/.exec(id)?.[1] ?? 0)
}

/** How long the log keeps a message that is not pending, from its change on. */
export const MESSAGES_KEPT_MS = 30 * 86_400_000

/** Bounds how long one transaction blocks deliveries. */
const EXPIRED_AT_ONCE = 500

/**
 * Removes some messages about changes before an instant (epoch milliseconds), unless they are pending.
 * @returns how many; 0: there are none
 */
export async function expireMessages(trx: Tx, before: number): Promise<number> {
  let count = 0
  for (const status of [...STORED_AS.delivered, ...STORED_AS.failed]) {
    const { numAffectedRows } = await sql`
      delete from messages where (cursor, webhook) in (
        select oldest.cursor, oldest.webhook from (
          select cursor, webhook from messages where status = ${status} order by cursor limit ${EXPIRED_AT_ONCE}
        ) as oldest join ${committedChanges(trx)} on changes.cursor = oldest.cursor where at < ${before})`.execute(
      trx,
    )
    count += Number(numAffectedRows ?? 0)
  }
  return count
}

export async function forgetMessages(trx: Tx): Promise<void> {
  await trx.deleteFrom('messages').execute()
}
