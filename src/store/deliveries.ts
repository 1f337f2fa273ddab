import { sql } from 'kysely'
import { BACKFILL_ENDPOINT, MANUAL_ENDPOINT } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { REPORTED_ID_PREFIX } from '../provider/ids.js'
import { compareText } from '../provider/order.js'
import { bulkUpsert } from './bulk.js'
import { ask, fixedQuery } from './engine.js'
import { type DeliveredEvent, signedHeaders } from './events.js'
import type { Database, Db, Tx } from './schema.js'

/** Nights and weekends are quiet in most shops: the longest silences of a whole week and more are known. */
export const WEEK_MS = 7 * 86_400_000

/** Events closer together than this are one arrival, so that a busy endpoint's row is not written with every batch. */
const ARRIVALS_APART_MS = 1_000

/** The newest interval has a weight of one in this many in the mean, once there have been as many. */
const MEAN_OVER = 20

/** How often new events come to one endpoint. Instants are epoch milliseconds, intervals milliseconds. */
export interface DeliveryPace {
  readonly arrivals: number
  readonly firstAt: number
  readonly lastAt: number
  /** An exponential mean; null until there are two arrivals. */
  readonly meanInterval: number | null
  /** When the current week began: the longest silences of that week and the one before are kept. */
  readonly weekAt: number
  readonly longest: number
  readonly longestBefore: number
}

/**
 * Adds new events to the pace of their endpoints: repeated deliveries are not arrivals. The last write of a transaction:
 * all that are under way write the same few rows.
 * @param before from `loadPaces`
 */
export async function recordArrivals(
  trx: Tx,
  deliveries: readonly DeliveredEvent[],
  before: ReadonlyMap<string, DeliveryPace>,
): Promise<void> {
  const paces = new Map(before)
  for (const { endpoint, receivedAt, headers } of deliveries) {
    // What Latchkey wrote itself came through no endpoint.
    if (signedHeaders(headers) === null) continue
    paces.set(endpoint, withArrival(paces.get(endpoint), receivedAt))
  }
  const changed = [...paces].filter(([endpoint, pace]) => pace !== before.get(endpoint))
  // In one order, so that no two transactions wait for each other.
  changed.sort(([a], [b]) => compareText(a, b))
  const rows = changed.map(([endpoint, pace]) => ({ endpoint, pace: JSON.stringify(pace) }))
  await upsertPaces(trx, rows)
}

/** An arrival that is not after the last one, such as an imported one, changes nothing. */
export function withArrival(pace: DeliveryPace | undefined, at: number): DeliveryPace {
  if (pace === undefined) {
    const silences = { meanInterval: null, longest: 0, longestBefore: 0 }
    return { arrivals: 1, firstAt: at, lastAt: at, weekAt: at, ...silences }
  }
  const interval = at - pace.lastAt
  if (interval < ARRIVALS_APART_MS) return pace
  const mean = pace.meanInterval ?? interval
  const week =
    at - pace.weekAt < WEEK_MS
      ? { longest: Math.max(pace.longest, interval) }
      : { weekAt: at, longest: interval, longestBefore: pace.longest }
  return {
    ...pace,
    ...week,
    arrivals: pace.arrivals + 1,
    lastAt: at,
    meanInterval: Math.round(mean + (interval - mean) / Math.min(pace.arrivals, MEAN_OVER)),
  }
}

/** Compiled once: every batch runs it. */
const SELECT_ALL = fixedQuery('paces', 'select endpoint, pace from delivery_pace')

const upsertPaces = bulkUpsert('delivery_pace', ['endpoint'])

/** By endpoint name, including endpoints that are not configured any more. */
export async function loadPaces(db: Db): Promise<ReadonlyMap<string, DeliveryPace>> {
  const rows = await ask<Database['delivery_pace']>(db, SELECT_ALL)
  return new Map(rows.map(({ endpoint, pace }) => [endpoint, JSON.parse(pace) as DeliveryPace]))
}

/** So many of the newest events are looked at: webhooks may come out of order. */
const NEWEST = 100

/** The latest date among the newest events of an environment, in epoch milliseconds; 0 if there is none. */
export async function newestDate(db: Db, environment: Environment): Promise<number> {
  const { rows } = await sql<{ latest: number | null }>`
    select max(created_at) as latest from (
      select created_at from events where environment = ${environment} order by seq desc limit ${NEWEST}
    ) as newest`.execute(db)
  return rows[0]?.latest ?? 0
}

/** When and where the newest delivery arrived, and its time by its sender's clock; null if none is stored. */
export async function loadNewestTimes(db: Db) {
  const { rows } = await sql<{ endpoint: string; receivedAt: number; createdAt: number | null }>`
    select endpoint, received_at as "receivedAt", created_at as "createdAt" from events
    where endpoint <> ${MANUAL_ENDPOINT}
      and not (endpoint = ${BACKFILL_ENDPOINT} and substr(event_id, 1, ${sql.lit(REPORTED_ID_PREFIX.length)}) = ${REPORTED_ID_PREFIX})
    order by seq desc limit 1`.execute(db)
  return rows[0] ?? null
}
