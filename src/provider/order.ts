/* The two sort orders: time, and text. */

import type { NormalizedEvent } from './event.js'

type Dated = Pick<NormalizedEvent, 'createdAt' | 'id'>

/** Plain time order, with ids breaking ties: the newer of two events counts. */
export function compareByTime(a: Dated, b: Dated): number {
  return a.createdAt - b.createdAt || compareText(a.id, b.id)
}

/** Code unit order, the same on every machine and in every locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** The value in the newest event that has one; null if none has. */
export function newestValue<E extends Dated, T>(
  events: readonly E[],
  read: (event: E) => T | null,
): T | null {
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
