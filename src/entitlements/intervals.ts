/* Turns "from this event on, access is so" into intervals of access. */

import type { AccessInterval, EndReason } from './model.js'

/** An end of access that is known: past or coming. */
export interface End {
  readonly at: number
  readonly reason: EndReason
  /** The event that set it. */
  readonly eventId: string
}

/** Access after an event, and the end it runs to if nothing else happens. */
export interface Access {
  readonly productId: string
  readonly end: End | null
}

interface Stretch {
  readonly productId: string
  readonly from: number
  readonly begunBy: string
  readonly end: End | null
}

/** Access so far, in order; the last stretch may still run. */
export interface TrackerState {
  readonly ended: readonly Stretch[]
  readonly running: Stretch | null
}

interface IntervalTracker {
  /**
   * Says what access is from `at` on. Where it just ended, and by no end that was known, the cause says why;
   * where only its product is another one, it moved.
   */
  see(at: number, access: Access | null, cause: Omit<End, 'at'>): void
  /** Access at `at`, the last instant seen or a later one. */
  accessAt(at: number): Access | null
  state(): TrackerState
}

/**
 * Follows "from this event on, access is so" as stretches of access. Instants must not decrease.
 * What begins and ends at one instant leaves nothing; what ends and goes on at one instant is unbroken.
 */
export function createIntervalTracker(): IntervalTracker {
  const ended: Stretch[] = []
  let running: Stretch | null = null

  function finish(stretch: Stretch, end: End): void {
    if (end.at > stretch.from) ended.push({ ...stretch, end })
    running = null
  }

  function begin(at: number, access: Access, eventId: string): void {
    const last = ended.at(-1)
    if (last !== undefined && last.productId === access.productId && last.end?.at === at) {
      ended.pop()
      running = { ...last, end: access.end }
    } else {
      running = { productId: access.productId, from: at, begunBy: eventId, end: access.end }
    }
  }

  return {
    see(at, access, cause) {
      if (running?.end && running.end.at <= at) finish(running, running.end)
      const over = access?.end && access.end.at <= at ? access.end : null
      const current = over ? null : access
      if (running && current === null) finish(running, { ...(over ?? cause), at })
      if (running && current && running.productId !== current.productId) {
        finish(running, { at, reason: 'moved', eventId: cause.eventId })
      }
      if (current === null) return
      if (running === null) begin(at, current, cause.eventId)
      else if (running.end !== current.end) running = { ...running, end: current.end }
    },
    accessAt: (at) => (running?.end && running.end.at <= at ? null : running),
    state: () => ({ ended, running }),
  }
}

export function intervalsOf({ ended, running }: TrackerState): AccessInterval[] {
  const intervals = ended.map(toInterval)
  if (running) intervals.push(toInterval(running))
  return intervals
}

/** Until when an interval lasts, in epoch milliseconds: for ever where no end is known. */
export function lastsUntil({ until }: AccessInterval): number {
  return until ?? Number.POSITIVE_INFINITY
}

function toInterval({ productId, from, begunBy, end }: Stretch): AccessInterval {
  return end === null
    ? { productId, from, until: null, reason: null, eventId: begunBy }
    : { productId, from, until: end.at, reason: end.reason, eventId: end.eventId }
}
