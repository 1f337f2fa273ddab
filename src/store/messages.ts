import { type Selectable, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkStatement } from './bulk.js'
import { type Change, changeLogEpoch, changeOf, formatCursor, latestCursor, numberIn } from './changes.js'
import type { RetryFilter } from './memberships.js'
import { type ChangesTable, type Db, ENVIRONMENTS, type MessagesTable, type Tx } from './schema.js'
import { getSetting, setSetting } from './settings.js'

/** A change of access for the outbound webhook. Instants are epoch milliseconds. */
export interface Message {
  /**
   * Of the change log at the time of queueing: together with the change's cursor it identifies the message for good.
   */
  readonly epoch: string
  readonly change: Change
  readonly attempts: number
  /** Null: none yet. */
  readonly firstAttemptAt: number | null
}

/** The messages due by `now`, earliest first: at most one per customer, and only after the earlier ones. */
export async function loadDueMessages(db: Db, now: number, limit: number): Promise<readonly Message[]> {
  const { rows } = await sql<Selectable<ChangesTable> & Omit<Message, 'change'>>`
    select changes.*, epoch, attempts, first_attempt_at as "firstAttemptAt"
    from messages join changes on changes.cursor = messages.cursor
    where next_attempt_at <= ${now} order by next_attempt_at limit ${limit}`.execute(db)
  return rows.map(({ epoch, attempts, firstAttemptAt, ...row }) => {
    return { epoch, change: changeOf(row), attempts, firstAttemptAt }
  })
}

/** When the next message after `now` is due; null: none is. */
export async function nextMessageAfter(db: Db, now: number): Promise<number | null> {
  const { rows } = await sql<{ at: number | null }>`
    select min(next_attempt_at) as at from messages where next_attempt_at > ${now}`.execute(db)
  return rows[0]?.at ?? null
}

/** The messages of one kind. */
export interface MessageCount {
  /** `pending`: not delivered yet. */
  readonly state: 'pending' | 'parked'
  /** Why they are parked. */
  readonly reason: MessagesTable['parked']
  readonly count: number
  /** When the oldest was queued, in epoch milliseconds. */
  readonly oldestAt: number
  /** From the newest attempt that failed; null: there was none. */
  readonly lastError: string | null
}

export async function countMessages(
  db: Db,
  environments: readonly Environment[] = ENVIRONMENTS,
): Promise<readonly MessageCount[]> {
  const isOfThese = sql`environment in (${sql.join(environments)})`
  const { rows } = await sql<MessageCount>`
    select case when parked is null then 'pending' else 'parked' end as state, parked as reason,
      count(*) as count, min(queued_at) as "oldestAt",
      (select last_error from messages as tried
        where ${isOfThese} and tried.parked is not distinct from messages.parked and last_error is not null
        order by cursor desc limit 1) as "lastError"
    from messages where ${isOfThese} group by parked`.execute(db)
  return rows
}

/** The setting for the last queued position in the change log. */
const QUEUED_UP_TO = 'outbound_cursor'

export interface QueueMessages {
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

/** Queues the changes appended to the log since the last time. */
export async function queueMessages(
  trx: Tx,
  { environments, limit }: QueueMessages,
  now: number,
): Promise<QueuedMessages> {
  const epoch = await changeLogEpoch(trx)
  const kept = await getSetting(trx, QUEUED_UP_TO)
  const after = kept === null ? null : numberIn(epoch, kept)
  if (after === null) {
    const upTo = await latestCursor(trx)
    await setSetting(trx, QUEUED_UP_TO, formatCursor(epoch, upTo))
    return { from: kept === null ? 'begun' : 'restored', upTo }
  }
  const upTo = Math.min(await latestCursor(trx), after + limit)
  const { rows } = await sql<CustomerRow>`
    insert into messages (cursor, epoch, environment, customer_id, queued_at)
      select cursor, ${epoch}, environment, customer_id, ${now} from changes
      where cursor > ${after} and cursor <= ${upTo} and environment in (${sql.join(environments)})
    returning environment, customer_id`.execute(trx)
  await beginNext(trx, rows.map(customerOf))
  if (upTo > after) await setSetting(trx, QUEUED_UP_TO, formatCursor(epoch, upTo))
  return { from: 'kept', upTo }
}

/** The result of one attempt. */
export interface MessageOutcome {
  readonly cursor: number
  readonly environment: Environment
  readonly customerId: string
  readonly result:
    | { readonly kind: 'delivered' }
    | {
        readonly kind: 'retry'
        readonly error: string
        readonly firstAttemptAt: number
        readonly nextAttemptAt: number
      }
    | {
        readonly kind: 'parked'
        readonly error: string
        readonly reason: NonNullable<MessagesTable['parked']>
      }
}

/** Saves results of attempts. Unless a message is to be retried, the customer's next message becomes due. */
export async function settleMessages(trx: Tx, outcomes: readonly MessageOutcome[]): Promise<void> {
  for (const { cursor, result } of outcomes) {
    if (result.kind === 'delivered') {
      await trx.deleteFrom('messages').where('cursor', '=', cursor).execute()
      continue
    }
    const after =
      result.kind === 'retry'
        ? { first_attempt_at: result.firstAttemptAt, next_attempt_at: result.nextAttemptAt }
        : { parked: result.reason, next_attempt_at: null }
    await trx
      .updateTable('messages')
      .set((eb) => ({ ...after, last_error: result.error, attempts: eb('attempts', '+', 1) }))
      .where('cursor', '=', cursor)
      .execute()
  }
  await beginNext(
    trx,
    outcomes.map(({ environment, customerId }) => [environment, customerId]),
  )
}

/**
 * Makes parked and delayed messages due; a parked message gets all its attempts again.
 * @returns how many
 */
export async function retryMessages(
  trx: Tx,
  { environments = ENVIRONMENTS, customerId }: RetryFilter,
): Promise<number> {
  const { rows } = await sql<CustomerRow>`
    update messages set parked = null,
      attempts = case when parked is null then attempts else 0 end,
      first_attempt_at = case when parked is null then first_attempt_at end,
      next_attempt_at = case when parked is null then queued_at end
    where (parked is not null or (next_attempt_at is not null and attempts > 0))
      and environment in (${sql.join(environments)})
      ${customerId === undefined ? sql`` : sql`and customer_id = ${customerId}`}
    returning environment, customer_id`.execute(trx)
  await beginNext(trx, rows.map(customerOf))
  return rows.length
}

/** Deletes every message, parked or not. */
export async function forgetMessages(trx: Tx): Promise<void> {
  await trx.deleteFrom('messages').execute()
}

/** Makes the earliest message of each of these customers due, unless one of theirs already has a time. */
const beginNext = bulkStatement(
  (customers) => sql`
    update messages set next_attempt_at = queued_at where cursor in (
      select min(cursor) from messages
      where parked is null and (environment, customer_id) in (${customers})
      group by environment, customer_id having count(next_attempt_at) = 0
    )`,
)

type CustomerRow = Pick<Selectable<MessagesTable>, 'environment' | 'customer_id'>

function customerOf({ environment, customer_id }: CustomerRow) {
  return [environment, customer_id] as const
}
