/** How far long work is, and how fast. */
export interface WorkRate {
  readonly reached: number
  readonly total: number
  /** Null until something was done. */
  readonly perSecond: number | null
  /** Whole ones. */
  readonly remainingSeconds: number | null
}

/** Measures from where the work stands at first: what an earlier run has done took none of this one's time. */
export function createWorkRate(clock: () => number): {
  measure(reached: number, total: number): WorkRate
} {
  let first: { readonly at: number; readonly reached: number } | null = null
  return {
    measure(reached, total) {
      first ??= { at: clock(), reached }
      const done = reached - first.reached
      const seconds = (clock() - first.at) / 1000
      if (done <= 0 || seconds <= 0) return { reached, total, perSecond: null, remainingSeconds: null }
      const perSecond = done / seconds
      return {
        reached,
        total,
        perSecond,
        remainingSeconds: Math.ceil(Math.max(0, total - reached) / perSecond),
      }
    },
  }
}

/** The same once all of it is done: what was told last may be short of the end. */
export function finished({ total, perSecond }: WorkRate): WorkRate {
  return { reached: total, total, perSecond, remainingSeconds: 0 }
}

/** The same once it has ended before that: nothing is going to be done. */
export function brokenOff(rate: WorkRate): WorkRate {
  return { ...rate, remainingSeconds: null }
}
