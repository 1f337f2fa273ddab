import type { EventFilter } from '../entitlements/stored-event.js'

/** Whether a filter can mean nothing at all, whatever is stored: that no event is found would look like an answer. */
export function endsBeforeItBegins({ from, to }: Pick<EventFilter, 'from' | 'to'>): boolean {
  return from !== null && to !== null && from > to
}

/** What to say of its `from` then. */
export const LATER_THAN_TO = 'is later than "to"'
