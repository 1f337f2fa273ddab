import type { Environment } from '../provider/event.js'

/** One text for one event of one environment; environments contain no space, so no two events share it. */
export function eventKey(environment: Environment, eventId: string): string {
  return `${environment} ${eventId}`
}

/** A page of a list ordered by id: at most `limit` ids, all after `after` (empty: from the first). */
export interface IdPage {
  readonly after: string
  readonly limit: number
}

export const EVERY_ID: IdPage = { after: '', limit: Number.MAX_SAFE_INTEGER }

/** In the sort order of keys. */
export const ENVIRONMENTS: readonly Environment[] = ['live', 'sandbox']
