import { isUsableId } from '../provider/ids.js'
import { invalidParameter, readParameter } from './query.js'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
const WHOLE_NUMBER = /^\d{1,3}$/

/** A stretch of a list that is ordered by id: at most `limit` items, all after `after` (empty: from the first). */
export interface Page {
  readonly after: string
  readonly limit: number
}

/**
 * The page that a request asks for, by `limit` and `cursor`.
 *
 * @throws LatchkeyError `invalid_request` for a limit that is not 1 to 100, or a cursor that no answer gave.
 */
export function readPage(query: URLSearchParams): Page {
  return { limit: readLimit(query), after: readCursor(query) }
}

/** One more than a page holds: whether it is there tells if the list goes on. */
export function withOneMore({ after, limit }: Page): Page {
  return { after, limit: limit + 1 }
}

/** A page as it goes over the wire. `found` may hold one item more than the page, which is not shown. */
export function pageJson<Item, Json>(
  found: readonly Item[],
  { limit }: Page,
  idOf: (item: Item) => string,
  toJson: (item: Item) => Json,
) {
  const shown = found.slice(0, limit)
  const last = shown.at(-1)
  const hasMore = found.length > limit
  const nextCursor = hasMore && last !== undefined ? cursorAt(idOf(last)) : null
  return { items: shown.map(toJson), pagination: { nextCursor, hasMore } }
}

/** @throws LatchkeyError `invalid_request` for one that is not 1 to 100 */
export function readLimit(query: URLSearchParams): number {
  const text = readParameter(query, 'limit')
  if (text === null) return DEFAULT_LIMIT
  const limit = WHOLE_NUMBER.test(text) ? Number(text) : 0
  if (limit < 1 || limit > MAX_LIMIT) {
    throw invalidParameter('limit', `is not a whole number from 1 to ${MAX_LIMIT}`)
  }
  return limit
}

function readCursor(query: URLSearchParams): string {
  const cursor = readParameter(query, 'cursor')
  if (cursor === null) return ''
  const id = Buffer.from(cursor, 'base64url').toString('utf8')
  // Decoding forgives whatever it is given: only a cursor that this id would get again is one.
  if (!isUsableId(id) || cursorAt(id) !== cursor)
    throw invalidParameter('cursor', 'is none that was given out')
  return id
}

/** The cursor of the page after this id. */
export function cursorAt(id: string): string {
  return Buffer.from(id, 'utf8').toString('base64url')
}
