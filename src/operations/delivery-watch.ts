import type { Kysely } from 'kysely'
import { type Arrival, loadNewestArrivals, loadSpreadArrivals } from '../store/last-deliveries.js'
import type { Database } from '../store/schema.js'
import {
  addArrivals,
  afterUnread,
  type DeliveryGap,
  type DeliveryHistory,
  describeGap,
  NO_DELIVERIES,
} from './delivery-gaps.js'

/** Read in some milliseconds, whatever their bodies weigh. */
const NEWEST_READ = 5_000

/** Ten minutes apart over eight days. */
const SPREAD_READ = 1_150
const SPREAD_OVER_MS = 8 * 86_400_000

/** By the name of an endpoint, also of one that is not configured any more. */
export type DeliveryGaps = ReadonlyMap<string, DeliveryGap>

export interface DeliveryWatchDeps {
  readonly db: Kysely<Database>
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/**
 * Tells how each endpoint stands whenever asked. The first time looks back over days; from then on only what
 * arrived since is read, so that a quiet endpoint beside a busy one is not lost from sight.
 */
export function createDeliveryWatch({ db, clock }: DeliveryWatchDeps): () => Promise<DeliveryGaps> {
  const histories = new Map<string, DeliveryHistory>()
  let newestSeq: number | null = null
  let looking: Promise<void> | null = null

  async function look(): Promise<void> {
    const newest = await loadNewestArrivals(db, { limit: NEWEST_READ, after: newestSeq ?? 0 })
    const isWhole = newest.length < NEWEST_READ
    const before = newest.at(-1)?.seq ?? 0
    const since = clock() - SPREAD_OVER_MS
    const isFirst = newestSeq === null
    take(isFirst && !isWhole ? await loadSpreadArrivals(db, { since, before, count: SPREAD_READ }) : [])
    if (!isWhole) for (const [name, history] of histories) histories.set(name, afterUnread(history))
    take(newest)
    newestSeq = newest.at(0)?.seq ?? newestSeq ?? 0
  }

  function take(arrivals: readonly Arrival[]): void {
    for (const [name, times] of byEndpoint(arrivals)) {
      histories.set(name, addArrivals(histories.get(name) ?? NO_DELIVERIES, times))
    }
  }

  return async () => {
    // One look serves all who ask meanwhile: two at once would take in the same arrivals twice.
    looking ??= look().finally(() => {
      looking = null
    })
    await looking
    const now = clock()
    const gaps = new Map<string, DeliveryGap>()
    for (const [name, history] of histories) {
      const gap = describeGap(history, now)
      if (gap !== null) gaps.set(name, gap)
    }
    return gaps
  }
}

function byEndpoint(arrivals: readonly Arrival[]): ReadonlyMap<string, readonly number[]> {
  const times = new Map<string, number[]>()
  for (const { endpoint, receivedAt } of arrivals) {
    const known = times.get(endpoint)
    if (known === undefined) times.set(endpoint, [receivedAt])
    else known.push(receivedAt)
  }
  return times
}
