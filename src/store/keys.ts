import type { Environment } from '../provider/event.js'

/** A stretch of a list that is ordered by id: at most `limit` ids, all after `after` (empty: from the first). */
export interface IdPage {
  readonly after: string
  readonly limit: number
}

export const EVERY_ID: IdPage = { after: '', limit: Number.MAX_SAFE_INTEGER }

/** In the order in which keys sort. */
export const ENVIRONMENTS: readonly Environment[] = ['live', 'sandbox']
