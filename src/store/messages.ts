import { type Kysely, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkStatement } from './bulk.js'
import { type Change, changeLogEpoch, changeOf, formatCursor, latestCursor, numberIn } from './changes.js'
import { ENVIRONMENTS } from './keys.js'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'
import type { MessagesTable } from './sync-schema.js'

/** A change of access that is to be told to the merchant's own address. */
export interface Message {
  /** Of the change log when it was queued: with the change's cursor it names the message for good. */
  readonly epoch: string
  readonly change: Change
  readonly attempts: number
  /** Epoch milliseconds; null: none yet. */
  readonly firstAttemptAt: number | null
}

/** Of each customer at most the earliest, and never while one before it waits; what was due first comes first. */
export async function loadDueMessages(
  db: Kysely<Database>,
  now: number,
  limit: number,
): Promise<readonly Message[]> {
  const rows = await db
    .selectFrom('messages')
    .innerJoin('changes', 'changes.cursor', 'messages.cursor')
    .selectAll('changes')
    .select(['messages.epoch', 'messages.attempts', 'messages.first_attempt_at'])
    .where('messages.next_attempt_at', 'is not', null)
    .where('messages.next_attempt_at', '<=', now)
    .orderBy('messages.next_attempt_at')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    epoch: row.epoch,
    change: changeOf(row),
    attempts: row.attempts,
    firstAttemptAt: row.first_attempt_at,
  }))
}

/** When the next one that is not due yet is; null: none is waiting for its time. */
export async function nextMessageAfter(db: Kysely<Database>, now: number): Promise<number | null> {
  const row = await db
    .selectFrom('messages')
    .select('next_attempt_at')
    .where('next_attempt_at', 'is not', null)
    .where('next_attempt_at', '>', now)
    .orderBy('next_attempt_at')
    .limit(1)
    .executeTakeFirst()
  return row?.next_attempt_at ?? null
}

/** How many there are of one kind; `parked` null: on their way. */
export interface MessageCount {
  readonly parked: MessagesTable['parked']
  readonly count: number
  /** When the oldest was queued, in epoch milliseconds. */
  readonly oldestAt: number
  /** What went wrong last with the newest of those that were tried; null: none was. */
  readonly lastError: string | null
}

export async function countMessages(
  db: Kysely<Database>,
  environments: readonly Environment[] = ENVIRONMENTS,
): Promise<readonly MessageCount[]> {
  const rows = await db
    .selectFrom('messages')
    .where('environment', 'in', environments)
    .select(({ fn }) => [
      'parked',
      fn.countAll<number>().as('count'),
      fn.min<number>('queued_at').as('oldest_at'),
    ])
    .groupBy('parked')
    .execute()
  return Promise.all(
    rows.map(async ({ parked, count, oldest_at }) => ({
      parked,
      count: Number(count),
      oldestAt: Number(oldest_at),
      lastError: await lastErrorOf(db, environments, parked),
    })),
  )
}

/**
 * Since when none of the pending messages that were tried has been taken, in epoch milliseconds, and how the newest
 * attempt failed; null: none has failed.
 */
export async function findOpenMessageFailure(
  db: Kysely<Database>,
): Promise<{ readonly since: number; readonly error: string } | null> {
  const row = await db
    .selectFrom('messages')
    .select(({ fn }) => fn.min<number | null>('first_attempt_at').as('since'))
    .where('parked', 'is', null)
    .where('last_error', 'is not', null)
    .executeTakeFirst()
  const error = await lastErrorOf(db, ENVIRONMENTS, null)
  return row?.since == null || error === null ? null : { since: Number(row.since), error }
}

async function lastErrorOf(
  db: Kysely<Database>,
  environments: readonly Environment[],
  parked: MessagesTable['parked'],
): Promise<string | null> {
  const row = await db
    .selectFrom('messages')
    .where('environment', 'in', environments)
    .select('last_error')
    .where('parked', parked === null ? 'is' : '=', parked)
    .where('last_error', 'is not', null)
    .orderBy('cursor', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.last_error ?? null
}

/** The setting that tells up to where the change log has been queued. */
const QUEUED_UP_TO = 'outbound_cursor'

export interface QueueMessages {
  readonly environments: readonly Environment[]
  /** How many changes are looked at, at most. */
  readonly limit: number
}

export interface QueuedMessages {
  /** `begun`: there was no place kept. `restored`: it was in another change log. Both go on at the log's end. */
  readonly from: 'kept' | 'begun' | 'restored'
  /** The number of the last change that was looked at. */
  readonly upTo: number
  readonly hasMore: boolean
}

/** Takes what was appended to the change log since the last time. */
export async function queueMessages(
  trx: Transaction<Database>,
  { environments, limit }: QueueMessages,
  now: number,
): Promise<QueuedMessages> {
  const epoch = await changeLogEpoch(trx)
  const kept = await getSetting(trx, QUEUED_UP_TO)
  const after = kept === null ? null : numberIn(epoch, kept)
  if (after === null) {
    const upTo = await latestCursor(trx)
    await setSetting(trx, QUEUED_UP_TO, formatCursor(epoch, upTo))
    return { from: kept === null ? 'begun' : 'restored', upTo, hasMore: false }
  }
  const changes = await trx
    .selectFrom('changes')
    .select(['cursor', 'environment', 'customer_id'])
    .where('cursor', '>', after)
    .orderBy('cursor')
    .limit(limit)
    .execute()
  const queued = changes.filter(({ environment }) => environments.includes(environment))
  await insert(
    trx,
    queued.map((change) => ({ ...change, epoch, queued_at: now })),
  )
  await beginNext(trx, queued.map(customerOf))
  const upTo = changes.at(-1)?.cursor ?? after
  if (upTo > after) await setSetting(trx, QUEUED_UP_TO, formatCursor(epoch, upTo))
  return { from: 'kept', upTo, hasMore: changes.length === limit }
}

/** What became of one attempt. */
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

/** Writes down what became of attempts. Where nothing is to be tried again, the customer's next message is due. */
export async function settleMessages(
  trx: Transaction<Database>,
  outcomes: readonly MessageOutcome[],
): Promise<void> {
  for (const { cursor, result } of outcomes) {
    if (result.kind === 'delivered') await trx.deleteFrom('messages').where('cursor', '=', cursor).execute()
    else await update(trx, cursor, result)
  }
  await beginNext(
    trx,
    outcomes.map(({ environment, customerId }) => [environment, customerId]),
  )
}

type Failed = Exclude<MessageOutcome['result'], { kind: 'delivered' }>

async function update(trx: Transaction<Database>, cursor: number, result: Failed): Promise<void> {
  const set =
    result.kind === 'retry'
      ? { first_attempt_at: result.firstAttemptAt, next_attempt_at: result.nextAttemptAt }
      : { parked: result.reason, next_attempt_at: null }
  await trx
    .updateTable('messages')
    .set((eb) => ({ ...set, last_error: result.error, attempts: eb('attempts', '+', 1) }))
    .where('cursor', '=', cursor)
    .execute()
}

/** Which messages are to be tried again at once; left out: whatever it is. */
export interface RetryMessages {
  readonly state?: 'parked' | 'retrying'
  /** What it is parked for. */
  readonly code?: string
  readonly environment?: Environment
  readonly customerId?: string
}

/**
 * Makes due what is parked, and what waits for its time; answers how many. A parked one gets the whole time for its
 * attempts again.
 */
export async function retryMessages(trx: Transaction<Database>, which: RetryMessages): Promise<number> {
  const { state, code } = which
  const parked = state === 'retrying' ? 0 : await retryParked(trx, which)
  const waiting = state === 'parked' || code !== undefined ? 0 : await retryWaiting(trx, which)
  return parked + waiting
}

async function retryParked(
  trx: Transaction<Database>,
  { code, environment, customerId }: RetryMessages,
): Promise<number> {
  const parked = await trx
    .updateTable('messages')
    .set({ parked: null, attempts: 0, first_attempt_at: null })
    .where('parked', 'is not', null)
    .$if(code !== undefined, (query) => query.where(sql`parked`, '=', code))
    .$if(environment !== undefined, (query) => query.where(sql`environment`, '=', environment))
    .$if(customerId !== undefined, (query) => query.where(sql`customer_id`, '=', customerId))
    .returning(['environment', 'customer_id'])
    .execute()
  await beginNext(trx, parked.map(customerOf))
  return parked.length
}

async function retryWaiting(
  trx: Transaction<Database>,
  { environment, customerId }: RetryMessages,
): Promise<number> {
  const { numUpdatedRows } = await trx
    .updateTable('messages')
    .set((eb) => ({ next_attempt_at: eb.ref('queued_at') }))
    .where('next_attempt_at', 'is not', null)
    .where('attempts', '>', 0)
    .$if(environment !== undefined, (query) => query.where(sql`environment`, '=', environment))
    .$if(customerId !== undefined, (query) => query.where(sql`customer_id`, '=', customerId))
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/** Forgets all that was still to be told, parked or not. */
export async function forgetMessages(trx: Transaction<Database>): Promise<void> {
  await trx.deleteFrom('messages').execute()
}

const insert = bulkInsert('messages', ['cursor', 'epoch', 'environment', 'customer_id', 'queued_at'])

/** Makes due the earliest message of each of these customers, unless one of theirs is due already. */
const beginNext = bulkStatement(
  (customers) => sql`
    update messages set next_attempt_at = queued_at where cursor in (
      select min(cursor) from messages
      where parked is null and (environment, customer_id) in (${customers})
      group by environment, customer_id having count(next_attempt_at) = 0
    )`,
)

function customerOf({ environment, customer_id }: Pick<MessagesTable, 'environment' | 'customer_id'>) {
  return [environment, customer_id] as const
}
