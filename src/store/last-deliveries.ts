import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.js'

/** When a stored event first arrived, and where; repeats of it are not counted. */
export interface Arrival {
  /** Rises with the order of arrival. */
  readonly seq: number
  readonly endpoint: string
  /** Epoch milliseconds. */
  readonly receivedAt: number
}

/** What is done by hand came through no endpoint. */
const IS_DELIVERY = sql<boolean>`headers <> 'null'`

/** The newest arrivals, newest first, at most `limit`, and only those that are newer than `after`. */
export async function loadNewestArrivals(
  db: Kysely<Database>,
  { limit, after = 0 }: { readonly limit: number; readonly after?: number },
): Promise<readonly Arrival[]> {
  const rows = await db
    .selectFrom('events')
    .select(['seq', 'endpoint', 'received_at'])
    .where('seq', '>', after)
    .where(IS_DELIVERY)
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toArrival)
}

/**
 * At most `count` of the arrivals since an instant and older than `before`, evenly spread over them: so
 * many events may have come in days that only some of them can be looked at.
 */
export async function loadSpreadArrivals(
  db: Kysely<Database>,
  { since, before, count }: { readonly since: number; readonly before: number; readonly count: number },
): Promise<readonly Arrival[]> {
  const first = await firstSeqSince(db, since, before)
  const step = Math.max(1, Math.ceil((before - first) / count))
  const wanted: number[] = []
  for (let seq = first; seq < before; seq += step) wanted.push(seq)
  if (wanted.length === 0) return []
  const rows = await db
    .selectFrom('events')
    .select(['seq', 'endpoint', 'received_at'])
    .where('seq', 'in', wanted)
    .where(IS_DELIVERY)
    .execute()
  return rows.map(toArrival)
}

/**
 * The `seq` from which on events arrived at or after an instant; `before` where none did. Looks at one event for
 * each halving, since events are stored in about the order in which they arrive.
 */
export async function firstSeqSince(db: Kysely<Database>, instant: number, before: number): Promise<number> {
  let low = 1
  let high = Math.max(1, before)
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const next = await db
      .selectFrom('events')
      .select(['seq', 'received_at'])
      .where('seq', '>=', middle)
      .where('seq', '<', before)
      .orderBy('seq')
      .limit(1)
      .executeTakeFirst()
    if (next !== undefined && next.received_at < instant) low = next.seq + 1
    else high = middle
  }
  return low
}

/** How many arrived since an instant. Looks at every event, since imports bring older ones after newer ones. */
export async function countArrivalsSince(db: Kysely<Database>, instant: number): Promise<number> {
  const row = await db
    .selectFrom('events')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('received_at', '>=', instant)
    .where(IS_DELIVERY)
    .executeTakeFirst()
  return Number(row?.count ?? 0)
}

/** When the newest event arrived, and when it happened as its sender tells; null where nothing is stored. */
export async function loadNewestTimes(
  db: Kysely<Database>,
): Promise<{ readonly receivedAt: number; readonly createdAt: number | null } | null> {
  const row = await db
    .selectFrom('events')
    .select(['received_at', 'created_at'])
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row === undefined ? null : { receivedAt: row.received_at, createdAt: row.created_at }
}

function toArrival(row: { seq: number; endpoint: string; received_at: number }): Arrival {
  return { seq: row.seq, endpoint: row.endpoint, receivedAt: row.received_at }
}
