import { type Kysely, sql, type Transaction } from 'kysely'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'

/** The `seq` up to which all bodies were removed for their age, except those of events that wait. */
const SETTING = 'bodies_expired_to'

export async function expiredTo(db: Kysely<Database>): Promise<number> {
  return Number((await getSetting(db, SETTING)) ?? 0)
}

export function saveExpiredTo(trx: Transaction<Database>, seq: number): Promise<void> {
  return setSetting(trx, SETTING, String(seq))
}

/**
 * When the event was received whose body is the next to grow too old: the first stored, which after an import need not
 * be the oldest. Null: there is none. Events that wait don't count.
 */
export async function nextAgingBodyAt(db: Kysely<Database>): Promise<number | null> {
  const row = await db
    .selectFrom('events')
    .select('received_at')
    .where('seq', '>', await expiredTo(db))
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst()
  return row?.received_at ?? null
}

/** Bodies that are kept beyond their age because their events still wait: how many, and since when the first. */
export interface WaitingBodies {
  readonly count: number
  /** Epoch milliseconds; null: there is none. */
  readonly oldestAt: number | null
}

/** Crossed in this order: few were passed over, and SQLite would go through all events for those. */
const PASSED_OVER = sql`waiting_bodies cross join events on events.seq = waiting_bodies.seq`

export async function readWaitingBodies(db: Kysely<Database>): Promise<WaitingBodies> {
  const { rows } = await sql<{ count: number; oldest_at: number | null }>`
    select count(*) as count, min(events.received_at) as oldest_at from ${PASSED_OVER}
    where events.disposition in ('held', 'quarantined') and events.body is not null`.execute(db)
  return { count: Number(rows[0]?.count ?? 0), oldestAt: rows[0]?.oldest_at ?? null }
}

/**
 * The earlier of two arrivals: of the oldest body kept because its event waits, and of the next to grow too old. Null:
 * there is neither. Cheap however large the store, and so blind to older bodies that were imported later.
 */
export async function firstKeptBodyAt(db: Kysely<Database>): Promise<number | null> {
  const kept = [await nextAgingBodyAt(db), (await readWaitingBodies(db)).oldestAt].filter((at) => at !== null)
  return kept.length === 0 ? null : Math.min(...kept)
}

/** When the oldest body came that somebody else sent and that is still here; null: there is none. Reads every event. */
export async function oldestBodyAt(db: Kysely<Database>): Promise<number | null> {
  const row = await db
    .selectFrom('events')
    .select(({ fn }) => fn.min<number | null>('received_at').as('oldest_at'))
    .where('body', 'is not', null)
    .where('headers', '!=', 'null')
    .executeTakeFirst()
  return row?.oldest_at ?? null
}

/** An event as retention looks at it: without its bytes. */
export interface AgingBody {
  readonly seq: number
  readonly receivedAt: number
  readonly isWaiting: boolean
  /** Whether there are bytes that somebody else sent. */
  readonly isKept: boolean
}

/** The next events beyond a `seq`, in the order of arrival. */
export async function loadAgingBodies(
  db: Kysely<Database>,
  beyond: number,
  limit: number,
): Promise<readonly AgingBody[]> {
  const rows = await db
    .selectFrom('events')
    .select(['seq', 'received_at', 'disposition', 'headers'])
    .select(sql<number>`body is not null`.as('has_body'))
    .where('seq', '>', beyond)
    .orderBy('seq')
    .limit(limit)
    .execute()
  return rows.map(({ seq, received_at: receivedAt, disposition, headers, has_body: hasBody }) => ({
    seq,
    receivedAt,
    isWaiting: disposition === 'held' || disposition === 'quarantined',
    isKept: hasBody === 1 && headers !== 'null',
  }))
}

/** Remembers events that still wait, whatever their age: once they don't, their bodies go. */
export async function passOverBodies(trx: Transaction<Database>, seqs: readonly number[]): Promise<void> {
  if (seqs.length === 0) return
  await trx
    .insertInto('waiting_bodies')
    .values(seqs.map((seq) => ({ seq })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Forgets some of the events that were passed over and wait no more, and returns them. */
export async function takeSettledBodies(
  trx: Transaction<Database>,
  limit: number,
): Promise<readonly number[]> {
  const { rows } = await sql<{ seq: number }>`
    select events.seq from ${PASSED_OVER}
    where events.disposition not in ('held', 'quarantined') limit ${limit}`.execute(trx)
  const seqs = rows.map(({ seq }) => seq)
  if (seqs.length > 0) await trx.deleteFrom('waiting_bodies').where('seq', 'in', seqs).execute()
  return seqs
}

const expiredAt = (now: number) =>
  sql`body = null, body_removed = 'expired', body_removed_at = ${now},
    body_bytes = coalesce(body_bytes, length(body))`

export async function expireBodies(
  trx: Transaction<Database>,
  seqs: readonly number[],
  now: number,
): Promise<void> {
  if (seqs.length === 0) return
  await sql`
    update events set ${expiredAt(now)} where seq in (${sql.join(seqs)}) and body is not null`.execute(trx)
}

/**
 * Removes some of the other bodies that came before an instant under the ids of events that don't wait. So few ever
 * come that it looks at all of them.
 * @returns how many
 */
export async function expireConflicts(
  trx: Transaction<Database>,
  before: number,
  now: number,
  limit: number,
): Promise<number> {
  const { numAffectedRows } = await sql`
    update event_conflicts set ${expiredAt(now)}
    where (environment, event_id, body_sha256) in (
      select other.environment, other.event_id, other.body_sha256
      from event_conflicts as other join events
        on events.environment = other.environment and events.event_id = other.event_id
      where other.body is not null and other.received_at < ${before}
        and events.disposition not in ('held', 'quarantined')
      limit ${limit}
    )`.execute(trx)
  return Number(numAffectedRows ?? 0)
}
