const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** With fewer arrivals nothing is usual yet. */
const ENOUGH_ARRIVALS = 20

/** Every hour of a week lies within it, and a day to spare: nights and weekends are quiet in most shops. */
const LOOK_BACK_MS = 8 * DAY_MS

/** While no whole week is known, a silence from Friday noon to Monday noon is taken for usual. */
const WEEK_MS = 7 * DAY_MS
const WEEKEND_MS = 3 * DAY_MS

/** A silence is unusual once it lasts this many times as long as the longest one of the last days. */
const TIMES_LONGEST = 2

/** However busy an endpoint is: its sender may pause for a deployment. */
const LEAST_UNUSUAL_MS = 15 * MINUTE_MS

/** Enough to tell a usual interval by. */
const RECENT_KEPT = 200

/** Bounds what is kept of eight days, and makes the longest silence at most this much longer than it was. */
const EARLIER_APART_MS = 5 * MINUTE_MS

/** When the events of one endpoint arrived, in epoch milliseconds and in order. */
export interface DeliveryHistory {
  /** All that arrived since the first of these. */
  readonly recent: readonly number[]
  /** Some of what arrived before: what is left out makes a silence look longer, never shorter. */
  readonly earlier: readonly number[]
}

export const NO_DELIVERIES: DeliveryHistory = { recent: [], earlier: [] }

/** How an endpoint stands at an instant. Durations are milliseconds. */
export interface DeliveryGap {
  /** Epoch milliseconds. */
  readonly lastAt: number
  /** Time since the last arrival. */
  readonly current: number
  /** The median of the recent intervals; null where fewer than two arrivals are recent. */
  readonly usualInterval: number | null
  /** How long a silence is unusual; null while too little is known to tell. */
  readonly unusualAfter: number | null
  readonly isUnusual: boolean
}

/** Takes in what arrived since, in whatever order. */
export function addArrivals(history: DeliveryHistory, arrivals: readonly number[]): DeliveryHistory {
  const newest = inOrder([...history.recent, ...arrivals])
  const earlier = inOrder([...history.earlier, ...newest.slice(0, -RECENT_KEPT)])
  const since = (newest.at(-1) ?? earlier.at(-1) ?? 0) - LOOK_BACK_MS
  return { recent: newest.slice(-RECENT_KEPT), earlier: thinned(earlier.filter((at) => at >= since)) }
}

/** What is known of an endpoint after a stretch of which not every arrival was read. */
export function afterUnread({ recent, earlier }: DeliveryHistory): DeliveryHistory {
  return { recent: [], earlier: thinned(inOrder([...earlier, ...recent])) }
}

/**
 * Tells how long an endpoint has been silent at `now`, and whether that is unusual: longer than any silence of the
 * last days by far, nights and weekends among them. Null for one that nothing has come to.
 */
export function describeGap({ recent, earlier }: DeliveryHistory, now: number): DeliveryGap | null {
  const arrivals = inOrder([...earlier, ...recent])
  const lastAt = arrivals.at(-1)
  if (lastAt === undefined) return null
  const current = Math.max(0, now - lastAt)
  const unusualAfter = arrivals.length < ENOUGH_ARRIVALS ? null : unusualSilence(arrivals)
  return {
    lastAt,
    current,
    usualInterval: medianOf(intervalsOf(recent)),
    unusualAfter,
    isUnusual: unusualAfter !== null && current > unusualAfter,
  }
}

function unusualSilence(arrivals: readonly number[]): number {
  const first = arrivals.at(0) ?? 0
  const last = arrivals.at(-1) ?? 0
  const lately = arrivals.filter((at) => at >= last - LOOK_BACK_MS)
  const longest = intervalsOf(lately).reduce((most, interval) => Math.max(most, interval), 0)
  const unknownYet = last - first < WEEK_MS ? WEEKEND_MS : 0
  return Math.max(LEAST_UNUSUAL_MS, TIMES_LONGEST * longest, unknownYet)
}

function intervalsOf(arrivals: readonly number[]): readonly number[] {
  return arrivals.slice(1).map((at, index) => at - (arrivals[index] ?? at))
}

function medianOf(values: readonly number[]): number | null {
  return inOrder(values).at(Math.floor(values.length / 2)) ?? null
}

function thinned(arrivals: readonly number[]): readonly number[] {
  let kept = Number.NEGATIVE_INFINITY
  return arrivals.filter((at) => {
    if (at - kept < EARLIER_APART_MS) return false
    kept = at
    return true
  })
}

function inOrder(values: readonly number[]): readonly number[] {
  return [...values].sort((a, b) => a - b)
}
