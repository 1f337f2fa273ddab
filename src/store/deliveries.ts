import { CompiledQuery, type Kysely, type Transaction } from 'kysely'
import { bulkUpsert } from './bulk.js'
import type { DeliveredEvent } from './events.js'
import type { Database, DeliveryPaceTable } from './schema.js'

/** Nights and weekends are quiet in most shops: of the longest silences, those of a whole week and more are known. */
export const WEEK_MS = 7 * 86_400_000

/** Events that come closer together are one arrival: a busy endpoint's row is not written with every batch. */
const ARRIVALS_APART_MS = 1_000

/** The weight of the newest interval in the mean is one in this many, once there have been as many. */
const MEAN_OVER = 20

/** How often new events come to one endpoint. Instants are epoch milliseconds, intervals milliseconds. */
export interface DeliveryPace {
  readonly arrivals: number
  readonly firstAt: number
  readonly lastAt: number
  /** An exponential mean; null until there are two arrivals. */
  readonly meanInterval: number | null
  /** When the current week began: the longest silence is kept of that week and of the one before. */
  readonly weekAt: number
  readonly longest: number
  readonly longestBefore: number
}

/** Takes new events into the pace of their endpoints: repeats of stored ones are no arrivals. */
export async function recordArrivals(
  trx: Transaction<Database>,
  deliveries: readonly DeliveredEvent[],
): Promise<void> {
  // What was done by hand came through no endpoint.
  const arrived = deliveries.filter(({ headers }) => headers !== null)
  if (arrived.length === 0) return
  const before = await loadPaces(trx)
  const paces = new Map(before)
  for (const { endpoint, receivedAt } of arrived) {
    paces.set(endpoint, withArrival(paces.get(endpoint), receivedAt))
  }
  const changed = [...paces].filter(([endpoint, pace]) => pace !== before.get(endpoint))
  await upsertPaces(
    trx,
    changed.map(([endpoint, pace]) => ({ endpoint, pace: JSON.stringify(pace) })),
  )
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

/** Composed once: it is asked with every batch. */
const SELECT_ALL = CompiledQuery.raw('select endpoint, pace from delivery_pace')

const upsertPaces = bulkUpsert('delivery_pace', ['endpoint'], ['pace'])

/** By the name of the endpoint, also of one that is not configured any more. */
export async function loadPaces(db: Kysely<Database>): Promise<ReadonlyMap<string, DeliveryPace>> {
  const { rows } = await db.executeQuery<DeliveryPaceTable>(SELECT_ALL)
  return new Map(rows.map(({ endpoint, pace }) => [endpoint, JSON.parse(pace) as DeliveryPace]))
}

/** When the newest event arrived, and when it happened by its sender's clock; null where nothing is stored. */
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
