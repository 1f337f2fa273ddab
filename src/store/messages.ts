/* Messages of the outbound webhooks: the queue of each address, and the log of attempts. */

import { type Selectable, sql } from 'kysely'
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
import { type ChangesTable, type Db, ENVIRONMENTS, type MessagesTable, type Tx } from './schema.js'
import { getSetting, setSetting } from './settings.js'

export interface MessageKey {
  /** Of the change. */
  readonly cursor: number
  /** The id of the address. */
  readonly webhook: string
}

/** One attempt to deliver a message. */
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
  /** Null: none yet. */
  readonly firstAttemptAt: number | null
  /** The newest attempts, oldest first, including those before it was sent again. */
  readonly log: readonly Attempt[]
}

/** The same at every attempt and address: receivers drop duplicates by it. The signature scheme allows no full stop. */
export function messageIdOf(epoch: string, cursor: number): string {
  return `msg_${epoch}_${cursor}`
}

type MessageRow = Selectable<ChangesTable> &
  Pick<Message, 'epoch' | 'webhook' | 'type' | 'attempts' | 'firstAttemptAt'> & { readonly log: string }

const COLUMNS = sql`changes.*, epoch, webhook, type, attempts, first_attempt_at as "firstAttemptAt", attempt_log as log`

function messageOf({ epoch, webhook, type, attempts, firstAttemptAt, log, ...row }: MessageRow): Message {
  const change = changeOf(row)
  return { epoch, webhook, type, change, attempts, firstAttemptAt, log: JSON.parse(log) as Attempt[] }
}

/** An address's messages due by `now`, earliest first: at most one per customer, and only after the earlier ones. */
export async function loadDueMessages(
  db: Db,
  webhook: string,
  now: number,
  limit: number,
): Promise<readonly Message[]> {
  const { rows } = await sql<MessageRow>`
    select ${COLUMNS} from messages join changes on changes.cursor = messages.cursor
    where webhook = ${webhook} and next_attempt_at <= ${now} order by next_attempt_at limit ${limit}`.execute(
    db,
  )
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

/** The result of one attempt. */
export interface MessageOutcome extends MessageKey {
  readonly environment: Environment
  readonly customerId: string
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

/** Saves results of attempts. Unless a message is to be retried, the customer's next message becomes due. */
export async function settleMessages(trx: Tx, outcomes: readonly MessageOutcome[]): Promise<void> {
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
      .execute()
    if (result.kind === 'delivered') settings.set(`${LAST_DELIVERED} ${webhook}`, String(at))
    else settings.set(`${LAST_ERROR} ${webhook}`, JSON.stringify({ at, reason: result.error }))
  }
  for (const [key, value] of settings) await setSetting(trx, key, value)
  await beginNext(
    trx,
    outcomes.map(({ webhook, environment, customerId }) => [webhook, environment, customerId]),
  )
}

export interface RetryMessages extends Omit<RetryFilter, 'target'> {
  readonly webhooks: readonly string[]
}

/**
 * Makes failed and delayed messages due; a failed message gets all its attempts again.
 * @returns how many
 */
export async function retryMessages(
  trx: Tx,
  { webhooks, environments = ENVIRONMENTS, customerId }: RetryMessages,
): Promise<number> {
  const { rows } = await sql<CustomerRow>`
    update messages set status = 'pending',
      attempts = case when status = 'pending' then attempts else 0 end,
      first_attempt_at = case when status = 'pending' then first_attempt_at end,
      next_attempt_at = case when status = 'pending' then queued_at end
    where (status in ('gone', 'given_up') or (status = 'pending' and next_attempt_at is not null and attempts > 0))
      and webhook in (${sql.join(webhooks)}) and environment in (${sql.join(environments)})
      ${customerId === undefined ? sql`` : sql`and customer_id = ${customerId}`}
    returning webhook, environment, customer_id`.execute(trx)
  await beginNext(trx, rows.map(customerOf))
  return rows.length
}

/** Deletes every message. */
export async function forgetMessages(trx: Tx): Promise<void> {
  await trx.deleteFrom('messages').execute()
}

/** Makes the earliest message of each of these customers due, unless one of theirs already has a time. */
const beginNext = bulkLookup(
  ['webhook', 'environment', 'customer_id'],
  (isTheirs) => sql`
    update messages set next_attempt_at = queued_at from (
      select min(cursor) as first, webhook as its from messages where status = 'pending' and ${isTheirs}
      group by webhook, environment, customer_id having count(next_attempt_at) = 0
    ) as next where cursor = next.first and webhook = next.its`,
)

type CustomerRow = Pick<Selectable<MessagesTable>, 'webhook' | 'environment' | 'customer_id'>

function customerOf({ webhook, environment, customer_id }: CustomerRow) {
  return [webhook, environment, customer_id] as const
}
