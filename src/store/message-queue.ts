/* The queue of messages to each address of the outbound webhooks. */

import { type RawBuilder, type Selectable, sql } from 'kysely'
import { type ChangeType, typeOfChange } from '../entitlements/entitlement.js'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkLookup } from './bulk.js'
import {
  type Change,
  changeLogEpoch,
  changeOf,
  committedChanges,
  formatCursor,
  latestCursor,
  loadChanges,
  numberIn,
} from './changes.js'
import type { RetryFilter } from './memberships.js'
import { noteOutcomes } from './message-counters.js'
import { type Attempt, HAS_FAILED, type MessageKey } from './message-log.js'
import {
  type ChangesTable,
  type Db,
  ENVIRONMENTS,
  type MessagesTable,
  type PersonKey,
  type Tx,
} from './schema.js'
import { getSetting, setSetting } from './settings.js'

/** A change of access for one address. Instants are epoch milliseconds. */
export interface Message {
  /**
   * Of the change log at the time of queueing: together with the change's cursor it identifies the message for good.
   */
  readonly epoch: string
  readonly webhook: string
  readonly type: ChangeType
  readonly change: Change
  /** When it was queued, or sent again for the last time. */
  readonly queuedAt: number
  readonly attempts: number
  /** Null: none yet. Later by any time that it was held back: the three days until it is given up leave that out. */
  readonly firstAttemptAt: number | null
  readonly dueAt: number
  /** The newest attempts, oldest first, including those before it was sent again. */
  readonly log: readonly Attempt[]
}

type MessageRow = Selectable<ChangesTable> & Omit<Message, 'change' | 'log'> & { readonly log: string }

const COLUMNS = sql`changes.*, epoch, webhook, type, queued_at as "queuedAt", attempts,
  first_attempt_at as "firstAttemptAt", next_attempt_at as "dueAt", attempt_log as log`

function messageOf(row: MessageRow): Message {
  return { ...row, change: changeOf(row), log: JSON.parse(row.log) as Attempt[] }
}

/** An address's messages due by `now`, earliest first: at most one per customer, and only after the earlier ones. */
export async function loadDueMessages(db: Db, webhook: string, now: number, limit: number) {
  const { rows } = await sql<MessageRow>`
    select ${COLUMNS} from messages join ${committedChanges(db)} on changes.cursor = messages.cursor
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
  /** Of the message that was sent. */
  readonly queuedAt: number
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
 * message that lost its time meanwhile does not count: it is sent again after an earlier one. Nor does that of an attempt
 * from before a replay, which an instance may be told of once another one makes the calls.
 */
export async function recordOutcomes(trx: Tx, outcomes: readonly MessageOutcome[]): Promise<void> {
  for (const { cursor, webhook, queuedAt, log, result } of outcomes) {
    const after =
      result.kind === 'retry'
        ? { first_attempt_at: result.firstAttemptAt, next_attempt_at: result.nextAttemptAt }
        : { status: result.kind === 'failed' ? result.reason : result.kind, next_attempt_at: null }
    await trx
      .updateTable('messages')
      .set((eb) => ({ ...after, attempt_log: JSON.stringify(log), attempts: eb('attempts', '+', 1) }))
      .where('cursor', '=', cursor)
      .where('webhook', '=', webhook)
      .where('queued_at', '=', queuedAt)
      .where('next_attempt_at', 'is not', null)
      .execute()
  }
  const noted = outcomes.map(({ webhook, environment, log, result }) => {
    const { at } = log[log.length - 1] as Attempt
    return { webhook, environment, at, error: result.kind === 'delivered' ? null : result.error }
  })
  await noteOutcomes(trx, noted)
  const customers = outcomes.map(({ webhook, environment, customerId }) => [webhook, environment, customerId])
  await beginNext(trx, customers)
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
