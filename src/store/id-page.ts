/** A stretch of a list that is ordered by id: at most `limit` ids, all after `after` (empty: from the first). */
export interface IdPage {
  readonly after: string
  readonly limit: number
}

export const EVERY_ID: IdPage = { after: '', limit: Number.MAX_SAFE_INTEGER }
