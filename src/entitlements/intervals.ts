/* Turns "from this event on, access is so" into intervals of access. */

import type { AccessInterval, EndReason } from './model.js'
import type { Change } from './reasons.js'

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

interface Stretch extends Access {
  readonly from: number
  readonly begunBy: string
}

/**
 * Follows "from this event on, access is so" as intervals of access. Instants must not decrease.
 * What begins and ends at one instant leaves nothing; what ends and goes on at one instant is unbroken.
 */
export function createIntervalTracker() {
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
    /**
     * Says what access is from `at` on, and answers what changed by that. Where it just ended, and by no end that was
     * known, the cause says why; where only its product is another one, it moved.
     */
    see(at: number, access: Access | null, cause: Omit<End, 'at'>): readonly Change[] {
      if (running?.end && running.end.at <= at) finish(running, running.end)
      const before = running
      const over = access?.end && access.end.at <= at ? access.end : null
      const current = over ? null : access
      if (running && current === null) finish(running, { ...(over ?? cause), at })
      if (running && current && running.productId !== current.productId) {
        finish(running, { at, reason: 'moved', eventId: cause.eventId })
      }
      if (current !== null) {
        if (running === null) begin(at, current, cause.eventId)
        else if (running.end !== current.end) running = { ...running, end: current.end }
      }
      return changesOf(before, current)
    },
    /** In order; the last one may still run. */
    intervals: () => (running ? [...ended, running] : ended).map(toInterval),
  }
}

const NO_CHANGE: readonly Change[] = []

function changesOf(before: Access | null, after: Access | null): readonly Change[] {
  if (before?.productId === after?.productId) return NO_CHANGE
  if (after === null)
    return before === null ? NO_CHANGE : [{ code: 'access_ended', productId: before.productId }]
  if (before === null) return [{ code: 'access_given', productId: after.productId }]
  return [{ code: 'access_moved', from: before.productId, to: after.productId }]
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
