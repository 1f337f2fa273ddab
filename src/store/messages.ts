/* Messages of the outbound webhooks: the queue of each address, and the log of attempts. */

import { type RawBuilder, type Selectable, sql } from 'kysely'
import { type ChangeType, typeOfChange } from '../entitlements/entitlement.js'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkLookup } from './bulk.js'
import {
  type Change,
  changeLogEpoch,
  changeOf,
  formatCursor,
  latestCursor,
  loadChanges,
  numberIn,
} from './changes.js'
import type { RetryFilter } from './memberships.js'
import {
  type ChangesTable,
  type Db,
  ENVIRONMENTS,
  type MessagesTable,
  type PersonKey,
  type Tx,
} from './schema.js'
import { getSetting, setSetting } from './settings.js'

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

/** A change of access for one address. Instants are epoch milliseconds. */
export interface Message {
  /**
   * Of the change log at the time of queueing: together with the change's cursor it identifies the message for good.
   */
  readonly epoch: string
  readonly webhook: string
  readonly type: ChangeType
  readonly change: Change
  readonly attempts: number
  /** Null: none yet. Later by any time that it was held back: the three days until it is given up leave that out. */
  readonly firstAttemptAt: number | null
  readonly dueAt: number
  /** The newest attempts, oldest first, including those before it was sent again. */
  readonly log: readonly Attempt[]
}

/** The same at every attempt and address: receivers drop duplicates by it. The signature scheme allows no full stop. */
export function messageIdOf(epoch: string, cursor: number): string {
  return `msg_${epoch}_${cursor}`
}

type MessageRow = Selectable<ChangesTable> & Omit<Message, 'change' | 'log'> & { readonly log: string }

const COLUMNS = sql`changes.*, epoch, webhook, type, attempts, first_attempt_at as "firstAttemptAt",
  next_attempt_at as "dueAt", attempt_log as log`

function messageOf(row: MessageRow): Message {
  return { ...row, change: changeOf(row), log: JSON.parse(row.log) as Attempt[] }
}

/** An address's messages due by `now`, earliest first: at most one per customer, and only after the earlier ones. */
export async function loadDueMessages(db: Db, webhook: string, now: number, limit: number) {
  const { rows } = await sql<MessageRow>`
    select ${COLUMNS} from messages join changes on changes.cursor = messages.cursor
    where webhook = ${webhook} and next_attempt_at <= ${now}
    order by next_attempt_at limit ${limit}`.execute(db)
  return rows.map(messageOf)
}

/** When an address's next message after `now` is due; null: none is. */
export async function nextMessageAfter(db: Db, webhook: string, now: number): Promise<number | null> {
  const { rows } = await sql<{ at: number | null }>`
    select min(next_attempt_at) as at from messages
    where webhook = ${webhook} and next_attempt_at > ${now}`.execute(db)
  return rows[0]?.at ?? null
}

/** How the delivery to one address goes. Instants are epoch milliseconds. */
export interface WebhookState {
  /** Messages that are not delivered yet. */
  readonly waiting: number
  /** When the oldest of them was queued; null: there is none. */
  readonly oldestWaitingAt: number | null
  /** Messages in the log that were given up. */
  readonly failed: number
  /** The newest delivery; null: there was none. */
  readonly lastDeliveredAt: number | null
  /** The newest attempt that failed. */
  readonly lastError: { readonly at: number; readonly reason: string } | null
}

const LAST_DELIVERED = 'outbound_delivered'
const LAST_ERROR = 'outbound_error'

/** @param environments whose messages are counted */
export async function readWebhookState(
  db: Db,
  webhook: string,
  environments: readonly Environment[] = ENVIRONMENTS,
): Promise<WebhookState> {
  const { rows } = await sql<Pick<WebhookState, 'waiting' | 'oldestWaitingAt' | 'failed'>>`
    select count(case when status = 'pending' then 1 end) as waiting,
      min(case when status = 'pending' then queued_at end) as "oldestWaitingAt",
      count(case when status <> 'pending' then 1 end) as failed
    from messages where status in ('pending', 'gone', 'given_up') and webhook = ${webhook}
      and environment in (${sql.join(environments)})`.execute(db)
  const deliveredAt = await getSetting(db, `${LAST_DELIVERED} ${webhook}`)
  const error = await getSetting(db, `${LAST_ERROR} ${webhook}`)
  return {
    ...(rows[0] ?? { waiting: 0, oldestWaitingAt: null, failed: 0 }),
    lastDeliveredAt: deliveredAt === null ? null : Number(deliveredAt),
    lastError: error === null ? null : (JSON.parse(error) as WebhookState['lastError']),
  }
}

/** The setting for the last queued position in the change log, by address. */
const QUEUED_UP_TO = 'outbound_cursor'

export interface QueueMessages {
  readonly webhook: string
  readonly types: readonly ChangeType[]
  readonly environments: readonly Environment[]
  /** How many changes to read, at most. */
  readonly limit: number
}

export interface QueuedMessages {
  /** `begun`: no position was stored. `restored`: it was in another change log. Both continue at the end of the log. */
  readonly from: 'kept' | 'begun' | 'restored'
  /** The number of the last change read. */
  readonly upTo: number
}

/** Queues the changes for an address that were appended to the log since the last time. */
export async function queueMessages(
  trx: Tx,
  { webhook, types, environments, limit }: QueueMessages,
  now: number,
): Promise<QueuedMessages> {
  const setting = `${QUEUED_UP_TO} ${webhook}`
  const epoch = await changeLogEpoch(trx)
  const kept = await getSetting(trx, setting)
  const after = kept === null ? null : numberIn(epoch, kept)
  if (after === null) {
    const upTo = await latestCursor(trx)
    await setSetting(trx, setting, formatCursor(epoch, upTo))
    return { from: kept === null ? 'begun' : 'restored', upTo }
  }
  const changes = await loadChanges(trx, null, after, limit)
  const rows = changes
    .map(({ cursor, environment, customerId: customer_id, before, after }) => {
      const type = typeOfChange(before, after)
      return { cursor, webhook, epoch, type, environment, customer_id, queued_at: now }
    })
    .filter(({ type, environment }) => types.includes(type) && environments.includes(environment))
  await insert(trx, rows)
  await beginNext(trx, rows.map(customerOf))
  const upTo = changes.at(-1)?.cursor ?? after
  if (upTo > after) await setSetting(trx, setting, formatCursor(epoch, upTo))
  return { from: 'kept', upTo }
}

const insert = bulkInsert('messages')

export interface MessageOutcome extends MessageKey, PersonKey {
  /** With this attempt at its end. */
  readonly log: readonly [...Attempt[], Attempt]
  readonly result:
    | { readonly kind: 'delivered' }
    | {
        readonly kind: 'retry'
        readonly error: string
        readonly firstAttemptAt: number
        readonly nextAttemptAt: number
      }
    | { readonly kind: 'failed'; readonly error: string; readonly reason: 'gone' | 'given_up' }
}

/**
 * Saves results of attempts. Unless a message is to be retried, the customer's next message becomes due. The result of a
 * message that lost its time meanwhile does not count: it is sent again after an earlier one.
 */
export async function recordOutcomes(trx: Tx, outcomes: readonly MessageOutcome[]): Promise<void> {
  const settings = new Map<string, string>()
  for (const { cursor, webhook, log, result } of outcomes) {
    const { at } = log[log.length - 1] as Attempt
    const after =
      result.kind === 'retry'
        ? { first_attempt_at: result.firstAttemptAt, next_attempt_at: result.nextAttemptAt }
        : { status: result.kind === 'failed' ? result.reason : result.kind, next_attempt_at: null }
    await trx
      .updateTable('messages')
      .set((eb) => ({ ...after, attempt_log: JSON.stringify(log), attempts: eb('attempts', '+', 1) }))
      .where('cursor', '=', cursor)
      .where('webhook', '=', webhook)
      .where('next_attempt_at', 'is not', null)
      .execute()
    if (result.kind === 'delivered') settings.set(`${LAST_DELIVERED} ${webhook}`, String(at))
    else settings.set(`${LAST_ERROR} ${webhook}`, JSON.stringify({ at, reason: result.error }))
  }
  for (const [key, value] of settings) await setSetting(trx, key, value)
  const customers = outcomes.map(({ webhook, environment, customerId }) => [webhook, environment, customerId])
  await beginNext(trx, customers)
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
  const isWhere = [
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
  ].filter((one) => one !== undefined)
  const { rows } = await sql<Omit<LoggedMessage, 'id' | 'attempts'> & Record<'epoch' | 'log', string>>`
    select messages.cursor, webhook, epoch, type, messages.environment, messages.customer_id as "customerId",
      product_id as "productId", case when ${HAS_FAILED} then 'failed' else status end as status,
      case when ${HAS_FAILED} then status end as reason, queued_at as "queuedAt",
      next_attempt_at as "nextAttemptAt", attempt_log as log
    from messages join changes on changes.cursor = messages.cursor where ${sql.join(isWhere, sql` and `)}
    order by messages.cursor ${direction}, webhook ${direction} limit ${limit}`.execute(db)
  return rows.map(({ epoch, log, ...row }) => {
    return { ...row, id: messageIdOf(epoch, row.cursor), attempts: JSON.parse(log) as Attempt[] }
  })
}

const HAS_FAILED = sql`status in ('gone', 'given_up')`

/** Of its change; 0 if it is no id of a message. */
function numberOfMessage(id: string): number {
  return Number(/^msg_\w+_(\d{1,15})$/.exec(id)?.[1] ?? 0)
}

/**
 * Queues messages once more, with all their attempts, and each customer's later ones after them: a receiver must get
 * the newest last.
 * @returns how many; those that are pending don't count
 */
export async function replayMessages(trx: Tx, keys: readonly MessageKey[], now: number): Promise<number> {
  if (keys.length === 0) return 0
  const list = keys.map(({ cursor, webhook }) => sql`(cast(${cursor} as bigint), ${webhook})`)
  return requeue(trx, sql`(cursor, webhook) in (values ${sql.join(list)})`, now)
}

async function requeue(trx: Tx, isOne: RawBuilder<unknown>, now: number): Promise<number> {
  const { rows } = await sql<CustomerRow>`
    update messages set status = 'pending', queued_at = ${now}, attempts = 0, first_attempt_at = null from (
      select min(cursor) as first, webhook as its, environment as place, customer_id as customer from messages
      where status <> 'pending' and ${isOne} group by webhook, environment, customer_id
    ) as begun
    where customer_id = customer and environment = place and cursor >= first and webhook = its
      and status <> 'pending'
    returning webhook, environment, customer_id`.execute(trx)
  await beginNext(trx, rows.map(customerOf))
  return rows.length
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
        ) as oldest join changes on changes.cursor = oldest.cursor where at < ${before})`.execute(trx)
    count += Number(numAffectedRows ?? 0)
  }
  return count
}

export interface RetryMessages extends Omit<RetryFilter, 'target'> {
  readonly webhooks: readonly string[]
  /** If omitted, failed ones, too. */
  readonly only?: 'delayed'
}

/** The setting for the time of the last retry, by address: any instance may be asked for one, and one sends. */
const RETRIED = 'outbound_retried'

export function lastRetryOf(db: Db, webhook: string): Promise<string | null> {
  return getSetting(db, `${RETRIED} ${webhook}`)
}

/**
 * Makes delayed messages due, as if they had just been queued, and queues failed ones once more, as a replay does.
 * @returns how many
 */
export async function retryMessages(
  trx: Tx,
  { webhooks, environments = ENVIRONMENTS, customerId, only }: RetryMessages,
  now: number,
): Promise<number> {
  for (const webhook of webhooks) await setSetting(trx, `${RETRIED} ${webhook}`, String(now))
  const isAsked = sql`webhook in (${sql.join(webhooks)}) and environment in (${sql.join(environments)})
    ${customerId === undefined ? sql`` : sql`and customer_id = ${customerId}`}`
  const { numAffectedRows: delayed } = await sql`
    update messages set attempts = 0, first_attempt_at = null, next_attempt_at = queued_at
    where status = 'pending' and next_attempt_at is not null and attempts > 0 and ${isAsked}`.execute(trx)
  const failed = only === 'delayed' ? 0 : await requeue(trx, sql`${HAS_FAILED} and ${isAsked}`, now)
  return Number(delayed ?? 0) + failed
}

export async function forgetMessages(trx: Tx): Promise<void> {
  await trx.deleteFrom('messages').execute()
}

/** Gives a time to the earliest pending message of each of these customers, and takes it from any later one. */
const beginNext = bulkLookup(
  ['webhook', 'environment', 'customer_id'],
  (isTheirs) => sql`
    update messages set next_attempt_at = case when cursor = first then queued_at end from (
      select min(cursor) as first, webhook as its, environment as place, customer_id as customer from messages
      where status = 'pending' and ${isTheirs} group by webhook, environment, customer_id
    ) as next
    where customer_id = customer and environment = place and cursor >= first and webhook = its
      and status = 'pending' and (next_attempt_at is null) = (cursor = first)`,
)

type CustomerRow = Pick<Selectable<MessagesTable>, 'webhook' | 'environment' | 'customer_id'>

function customerOf({ webhook, environment, customer_id }: CustomerRow) {
  return [webhook, environment, customer_id] as const
}
