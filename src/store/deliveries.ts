import { CompiledQuery, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
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

/** What this needs to know of a delivery. */
interface Arrival {
  readonly endpoint: string
  readonly receivedAt: number
  /** Null: done by hand, and so through no endpoint. */
  readonly headers: unknown
}

/** Takes new events into the pace of their endpoints: repeats of stored ones are no arrivals. */
export async function recordArrivals(
  trx: Transaction<Database>,
  deliveries: readonly Arrival[],
): Promise<void> {
  const arrived = deliveries.filter(({ headers }) => headers !== null)
  if (arrived.length === 0) return
  const known = await loadPaces(trx)
  const changed = new Map<string, DeliveryPace>()
  for (const { endpoint, receivedAt } of arrived) {
    const pace = changed.get(endpoint) ?? known.get(endpoint)
    const next = withArrival(pace, receivedAt)
    if (next !== pace) changed.set(endpoint, next)
  }
  for (const [endpoint, pace] of changed) await savePace(trx, endpoint, pace)
}

/** An arrival that is not after the last one, such as an imported one, changes nothing. */
export function withArrival(pace: DeliveryPace | undefined, at: number): DeliveryPace {
  if (pace === undefined) {
    return {
      arrivals: 1,
      firstAt: at,
      lastAt: at,
      meanInterval: null,
      weekAt: at,
      longest: 0,
      longestBefore: 0,
    }
  }
  const interval = at - pace.lastAt
  if (interval < ARRIVALS_APART_MS) return pace
  const mean = pace.meanInterval ?? interval
  const isNewWeek = at - pace.weekAt >= WEEK_MS
  return {
    arrivals: pace.arrivals + 1,
    firstAt: pace.firstAt,
    lastAt: at,
    meanInterval: Math.round(mean + (interval - mean) / Math.min(pace.arrivals, MEAN_OVER)),
    weekAt: isNewWeek ? at : pace.weekAt,
    longest: isNewWeek ? interval : Math.max(pace.longest, interval),
    longestBefore: isNewWeek ? pace.longest : pace.longestBefore,
  }
}

/** Composed once: it is asked with every batch. */
const SELECT_ALL = CompiledQuery.raw('select * from delivery_pace')

/** By the name of the endpoint, also of one that is not configured any more. */
export async function loadPaces(db: Kysely<Database>): Promise<ReadonlyMap<string, DeliveryPace>> {
  const { rows } = await db.executeQuery<Selectable<DeliveryPaceTable>>(SELECT_ALL)
  return new Map(
    rows.map((row) => [
      row.endpoint,
      {
        arrivals: row.arrivals,
        firstAt: row.first_at,
        lastAt: row.last_at,
        meanInterval: row.mean_interval,
        weekAt: row.week_at,
        longest: row.longest,
        longestBefore: row.longest_before,
      },
    ]),
  )
}

async function savePace(trx: Transaction<Database>, endpoint: string, pace: DeliveryPace): Promise<void> {
  const row = {
    arrivals: pace.arrivals,
    first_at: pace.firstAt,
    last_at: pace.lastAt,
    mean_interval: pace.meanInterval,
    week_at: pace.weekAt,
    longest: pace.longest,
    longest_before: pace.longestBefore,
  }
  await trx
    .insertInto('delivery_pace')
    .values({ endpoint, ...row })
    .onConflict((conflict) => conflict.column('endpoint').doUpdateSet(row))
    .execute()
}

/** How many arrived since an instant. Looks at every event, since imports bring older ones after newer ones. */
export async function countArrivalsSince(db: Kysely<Database>, instant: number): Promise<number> {
  const row = await db
    .selectFrom('events')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('received_at', '>=', instant)
    .where(sql<boolean>`headers <> 'null'`)
    .executeTakeFirst()
  return Number(row?.count ?? 0)
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
