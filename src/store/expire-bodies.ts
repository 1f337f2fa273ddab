import { sql } from 'kysely'
import { setBody } from './events.js'
import type { Db, Tx } from './schema.js'
import { getSetting, setSetting } from './settings.js'

/** All bodies up to this `seq` were removed for their age, except those of waiting events. */
const SETTING = 'bodies_expired_to'

/** Bounds how long one transaction blocks deliveries. */
const AT_ONCE = 100

/** As literals, since a partial index has the same condition. */
const WAITS = sql<boolean>`events.disposition in ('held', 'quarantined')`

/** Bodies that were skipped, and whose events no longer wait. */
const SETTLED = sql`select seq from events where seq in (select seq from waiting_bodies) and not ${WAITS}
  order by seq limit ${sql.lit(AT_ONCE)}`

/**
 * Removes some bodies of events received before an instant (epoch milliseconds), in the order of arrival. The
 * normalised events stay, and so do the hashes, which recognise repeated deliveries. Held and quarantined events keep
 * their bodies until they are settled.
 * @returns how many events it processed; 0: there is nothing to do now
 */
export async function expireBodies(trx: Tx, before: number, now: number): Promise<number> {
  const from = await expiredTo(trx)
  const { rows: next } = await sql<{ seq: number; received_at: number }>`
    select seq, received_at from events where seq > ${from} order by seq limit ${AT_ONCE}`.execute(trx)
  const firstYoung = next.findIndex((event) => event.received_at >= before)
  const old = firstYoung === -1 ? next : next.slice(0, firstYoung)
  const last = old.at(-1)
  if (last === undefined) return (await expireSettled(trx, now)) + (await expireConflicts(trx, before, now))
  // Changes by hand have no headers, and their bodies come from nobody else.
  const due = sql`seq > ${from} and seq <= ${last.seq} and body is not null and headers <> 'null'`
  await sql`insert into waiting_bodies select seq from events where ${due} and ${WAITS}
    on conflict do nothing`.execute(trx)
  await sql`update events set ${setBody(null, 'expired', now)} where ${due} and not ${WAITS}`.execute(trx)
  await setSetting(trx, SETTING, String(last.seq))
  return old.length
}

async function expiredTo(db: Db): Promise<number> {
  return Number((await getSetting(db, SETTING)) ?? 0)
}

async function expireSettled(trx: Tx, now: number): Promise<number> {
  await sql`update events set ${setBody(null, 'expired', now)}
    where seq in (${SETTLED}) and body is not null`.execute(trx)
  const done = await sql`delete from waiting_bodies where seq in (${SETTLED})`.execute(trx)
  return Number(done.numAffectedRows ?? 0)
}

/** Other bodies that came under the ids of settled events. They are so few that it reads all of them. */
async function expireConflicts(trx: Tx, before: number, now: number): Promise<number> {
  const { numAffectedRows } = await sql`
    update event_conflicts set ${setBody(null, 'expired', now)}
    where (environment, event_id, body_sha256) in (
      select other.environment, other.event_id, other.body_sha256
      from event_conflicts as other join events
        on events.environment = other.environment and events.event_id = other.event_id
      where other.body is not null and other.received_at < ${before} and not ${WAITS}
      limit ${AT_ONCE}
    )`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/**
 * When the event with the next body to expire was received: the first stored one, which after an import may not be the
 * oldest. Null: there is none. Waiting events don't count.
 */
export async function nextAgingBodyAt(db: Db): Promise<number | null> {
  const { rows } = await sql<{ received_at: number }>`
    select received_at from events where seq > ${await expiredTo(db)} order by seq limit 1`.execute(db)
  return rows[0]?.received_at ?? null
}

export type WaitingBodies = Awaited<ReturnType<typeof readWaitingBodies>>

/** Old bodies kept because their events still wait: how many, and since when the first (null: there is none). */
export async function readWaitingBodies(db: Db) {
  const { rows } = await sql<{ readonly count: number; readonly oldestAt: number | null }>`
    select count(*) as count, min(received_at) as "oldestAt" from events
    where seq in (select seq from waiting_bodies) and ${WAITS} and body is not null`.execute(db)
  return rows[0] ?? { count: 0, oldestAt: null }
}

/**
 * The earlier of two arrivals: of the oldest body kept because its event waits, and of the next to expire. Null: there
 * is neither. Cheap even in a large store, but does not see older bodies that were imported later.
 */
export async function firstKeptBodyAt(db: Db): Promise<number | null> {
  const kept = [await nextAgingBodyAt(db), (await readWaitingBodies(db)).oldestAt].filter((at) => at !== null)
  return kept.length === 0 ? null : Math.min(...kept)
}

/** When the oldest stored body of a delivery came; null: there is none. Reads every event. */
export async function oldestBodyAt(db: Db): Promise<number | null> {
  const { rows } = await sql<{ oldest_at: number | null }>`
    select min(received_at) as oldest_at from events where body is not null and headers <> 'null'`.execute(db)
  return rows[0]?.oldest_at ?? null
}
