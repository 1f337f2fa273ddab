import type { Logger } from 'pino'
import { type DeliveryPace, loadPaces, WEEK_MS } from '../store/deliveries.js'
import type { Db } from '../store/schema.js'

/** With fewer arrivals, no gap counts as usual yet. */
const ENOUGH_ARRIVALS = 20

/** Until a whole week is known, a silence from Friday noon to Monday noon counts as usual. */
const WEEKEND_MS = 3 * 86_400_000

/** A silence is unusual if it lasts this many times as long as the longest one of the last week or two. */
const TIMES_LONGEST = 2

/** The minimum for busy endpoints: the sender may pause for a deployment. */
const LEAST_UNUSUAL_MS = 15 * 60_000

/** How long an endpoint has been silent. Durations are milliseconds. */
export interface DeliveryGap {
  /** Epoch milliseconds. */
  readonly lastAt: number
  /** Time since the last arrival. */
  readonly current: number
  /** Null until there are two arrivals. */
  readonly usualInterval: number | null
  /** The length from which a silence is unusual; null while too little is known. */
  readonly unusualAfter: number | null
  readonly isUnusual: boolean
}

/** By endpoint name, including endpoints that are not configured any more. */
export type DeliveryGaps = ReadonlyMap<string, DeliveryGap>

export async function readGaps(db: Db, now: number): Promise<DeliveryGaps> {
  const paces = await loadPaces(db)
  return new Map([...paces].map(([endpoint, pace]) => [endpoint, describeGap(pace, now)]))
}

export function describeGap(pace: DeliveryPace, now: number): DeliveryGap {
  const { arrivals, firstAt, lastAt, meanInterval } = pace
  const current = Math.max(0, now - lastAt)
  const unknownYet = lastAt - firstAt < WEEK_MS ? WEEKEND_MS : 0
  const longest = Math.max(pace.longest, pace.longestBefore)
  const unusualAfter =
    arrivals < ENOUGH_ARRIVALS ? null : Math.max(LEAST_UNUSUAL_MS, TIMES_LONGEST * longest, unknownYet)
  return {
    lastAt,
    current,
    usualInterval: meanInterval,
    unusualAfter,
    isUnusual: unusualAfter !== null && current > unusualAfter,
  }
}

/**
 * Logs once that an endpoint has fallen silent, and once that deliveries arrive again.
 * @param endpointNames called each time, since a reload may change them
 */
export function createWarnOfGaps(
  readNow: () => Promise<DeliveryGaps>,
  endpointNames: () => readonly string[],
  log: Logger,
): () => Promise<void> {
  /** The last delivery before the silence, by endpoint. */
  const silentSince = new Map<string, number>()

  return async () => {
    const gaps = await readNow()
    for (const endpoint of endpointNames()) {
      const gap = gaps.get(endpoint)
      const since = silentSince.get(endpoint)
      if (gap === undefined || gap.isUnusual === (since !== undefined)) continue
      if (since === undefined) {
        silentSince.set(endpoint, gap.lastAt)
        log.warn(
          {
            endpoint,
            lastDelivery: new Date(gap.lastAt).toISOString(),
            silentSeconds: seconds(gap.current),
            usualIntervalSeconds: gap.usualInterval === null ? null : seconds(gap.usualInterval),
          },
          'no delivery for an unusually long time: check the sender, and the proxies on the way',
        )
      } else {
        silentSince.delete(endpoint)
        log.info({ endpoint, silentSeconds: seconds(gap.lastAt - since) }, 'deliveries arrive again')
      }
    }
  }
}

function seconds(ms: number): number {
  return Math.round(ms / 1000)
}
