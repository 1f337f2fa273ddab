/* Turns changes of access into intervals. */

import type { AccessInterval, EndReason } from './model.js'
import type { Change } from './reasons.js'

/** A known end of access: past or coming. */
export interface End {
  readonly at: number
  readonly reason: EndReason
  /** The event that set it. */
  readonly eventId: string
}

/** Access after an event, and its end if nothing else happens. */
export interface Access {
  readonly productId: string
  readonly end: End | null
}

interface Stretch extends Access {
  readonly from: number
  readonly begunBy: string
}

/**
 * Collects changes of access as intervals. Instants must not decrease. An interval that begins and ends at the same
 * instant is dropped; access that ends and begins at the same instant is unbroken.
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
     * Sets the access from `at` on, and returns the change. If access ended before its known end, `cause` says why; if
     * only its product changed, it moved.
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

/** The end of an interval, in epoch milliseconds; infinite if no end is known. */
export function lastsUntil({ until }: AccessInterval): number {
  return until ?? Number.POSITIVE_INFINITY
}

function toInterval({ productId, from, begunBy, end }: Stretch): AccessInterval {
  return end === null
    ? { productId, from, until: null, reason: null, eventId: begunBy }
    : { productId, from, until: end.at, reason: end.reason, eventId: end.eventId }
}
