/* The two orders that everything is sorted by: time, and text. */

import type { NormalizedEvent } from '../provider/event.js'

type Dated = Pick<NormalizedEvent, 'createdAt' | 'id'>

/** Plain time order, ids breaking ties: decides which of two events is the newer one to believe. */
export function compareByTime(a: Dated, b: Dated): number {
  return a.createdAt - b.createdAt || compareText(a.id, b.id)
}

/** Code unit order, the same on every machine and under every locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** What the newest of the events that have such a value says; null where none has one. */
export function newestTold<E extends Dated, T>(events: readonly E[], read: (event: E) => T | null): T | null {
  let newest: E | null = null
  let answer: T | null = null
  for (const event of events) {
    const value = read(event)
    if (value !== null && (newest === null || compareByTime(event, newest) > 0)) {
      newest = event
      answer = value
    }
  }
  return answer
}
