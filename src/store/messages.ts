import type { Kysely } from 'kysely'
import type { Environment } from '../provider/event.js'
import { type Change, changeOf } from './changes.js'
import { ENVIRONMENTS } from './keys.js'
import type { Database } from './schema.js'
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
