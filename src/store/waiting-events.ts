import { type Kysely, sql } from 'kysely'
import type { HoldReason } from '../entitlements/model.js'
import type { Environment, QuarantineReason } from '../provider/event.js'
import type { Database } from './schema.js'

/** Events that are stored and count nowhere: until a later event tells more, or until an operator acts. */
export interface WaitingCount {
  readonly environment: Environment
  readonly disposition: 'held' | 'quarantined'
  readonly count: number
}

export interface WaitingReason extends WaitingCount {
  readonly reason: HoldReason | QuarantineReason
  /** When the first of them arrived, in epoch milliseconds. */
  readonly oldestAt: number
}

/** In literals, or SQLite would not use the index that holds the few events that wait. */
const IS_WAITING = sql`disposition in ('held', 'quarantined')`

/** Read off an index that holds these events alone. */
export async function countWaiting(db: Kysely<Database>): Promise<readonly WaitingCount[]> {
  const { rows } = await sql<WaitingCount>`
    select environment, disposition, count(*) as count from events
    where ${IS_WAITING} group by environment, disposition order by environment, disposition`.execute(db)
  return rows.map((row) => ({ ...row, count: Number(row.count) }))
}

/** Reads each event that waits. */
export async function countWaitingByReason(db: Kysely<Database>): Promise<readonly WaitingReason[]> {
  const { rows } = await sql<WaitingReason>`
    select environment, disposition, reason, count(*) as count, min(received_at) as "oldestAt" from events
    where ${IS_WAITING} group by environment, disposition, reason
    order by environment, disposition, reason`.execute(db)
  return rows.map((row) => ({ ...row, count: Number(row.count), oldestAt: Number(row.oldestAt) }))
}

/** How many other bodies came under ids of stored events. */
export async function countConflicts(db: Kysely<Database>): Promise<number> {
  const row = await db
    .selectFrom('event_conflicts')
    .select((expression) => expression.fn.countAll<number | string>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(row.count)
}
