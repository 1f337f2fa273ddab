/* How deliveries have gone in the last hour, by the minute: in memory, since duplicates and refusals are not stored. */

import type { Disposition } from '../ingest/delivery.js'

/** `refused`: not authentic, or not readable; `notStored`: its sender got an error, and sends it again. */
export type DeliveryOutcome = Disposition | 'refused' | 'notStored'

const OUTCOMES = ['applied', 'ignored', 'held', 'quarantined', 'duplicate', 'refused', 'notStored'] as const

const MINUTE_MS = 60_000
const MINUTES = 60

/** Each step is a tenth longer than the one before: from a tenth of a millisecond to over five seconds. */
const LEAST_MS = 0.1
const RATIO = 1.1
const STEPS = 120

interface Minute {
  readonly at: number
  readonly counts: Record<DeliveryOutcome, number>
  /** How many were acknowledged in each step of time. */
  readonly acknowledged: Uint32Array
}

export type Pulse = ReturnType<typeof createPulse>

/** @param clock epoch milliseconds */
export function createPulse(clock: () => number) {
  const startedAt = minuteOf(clock())
  /** By the name of the endpoint, oldest first: a minute without deliveries has none. */
  const minutes = new Map<string, Minute[]>()

  return {
    /** @param ms until it was answered */
    note(endpoint: string, outcome: DeliveryOutcome, ms: number): void {
      const at = minuteOf(clock())
      const own = minutes.get(endpoint) ?? []
      minutes.set(endpoint, own)
      let minute = own.at(-1)
      if (minute === undefined || minute.at < at) {
        minute = { at, counts: noneOf(), acknowledged: new Uint32Array(STEPS) }
        own.push(minute)
        while ((own[0]?.at ?? at) <= at - MINUTES * MINUTE_MS) own.shift()
      }
      minute.counts[outcome] += 1
      if (outcome === 'refused' || outcome === 'notStored') return
      const step = Math.ceil(Math.log(Math.max(ms, LEAST_MS) / LEAST_MS) / Math.log(RATIO))
      const place = Math.min(step, STEPS - 1)
      minute.acknowledged[place] = (minute.acknowledged[place] ?? 0) + 1
    },
    /**
     * The last hour, or since the daemon started, of these endpoints together: a minute each, oldest first. Times are
     * known to a tenth; null: nothing was acknowledged.
     */
    read(endpoints: readonly string[]) {
      const now = minuteOf(clock())
      const from = Math.max(startedAt, now - (MINUTES - 1) * MINUTE_MS)
      const own = endpoints.flatMap((name) => minutes.get(name) ?? []).filter(({ at }) => at >= from)
      const byMinute = Map.groupBy(own, ({ at }) => at)
      const counted = Array.from({ length: (now - from) / MINUTE_MS + 1 }, (_, index) => {
        const at = from + index * MINUTE_MS
        return { at, ...sumOf(byMinute.get(at) ?? []) }
      })
      return { minutes: counted, acknowledged: timesIn(own) }
    },
  }
}

const minuteOf = (at: number): number => Math.floor(at / MINUTE_MS) * MINUTE_MS

function noneOf(): Record<DeliveryOutcome, number> {
  return { applied: 0, ignored: 0, held: 0, quarantined: 0, duplicate: 0, refused: 0, notStored: 0 }
}

function sumOf(minutes: readonly Minute[]): Record<DeliveryOutcome, number> {
  const sum = noneOf()
  for (const { counts } of minutes) for (const one of OUTCOMES) sum[one] += counts[one]
  return sum
}

/** In milliseconds. */
function timesIn(minutes: readonly Minute[]) {
  const steps = Array.from({ length: STEPS }, (_, step) =>
    minutes.reduce((sum, { acknowledged }) => sum + (acknowledged[step] ?? 0), 0),
  )
  const count = steps.reduce((sum, one) => sum + one, 0)
  if (count === 0) return null
  const within = (share: number): number => {
    let left = Math.ceil(count * share)
    const step = steps.findIndex((one) => {
      left -= one
      return left <= 0
    })
    return Number((LEAST_MS * RATIO ** step).toPrecision(2))
  }
  return { count, p50Ms: within(0.5), p95Ms: within(0.95), p99Ms: within(0.99) }
}
