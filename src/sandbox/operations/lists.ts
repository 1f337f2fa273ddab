/* Lists of records, the newest first: by cursor as v3 has them, by page as v2 has them. */

import { z } from 'zod'
import { MAX_PAGE_SIZE } from '../../provider/requests.js'
import type { Kind, Records } from '../model.js'
import type { Where, World } from '../world.js'
import { type Operation, operation } from './operation.js'

/** In a query all is text. */
function wholeNumber(most: number) {
  const message = `must be an integer from 1 to ${most}`
  const text = z.string().regex(/^\d{1,9}$/, message)
  return text.transform(Number).refine((number) => number >= 1 && number <= most, message)
}

const cursorAt = (place: number): string => Buffer.from(`before ${place}`).toString('base64url')
const CURSOR = z
  .string()
  .transform((text) => /^before (\d{1,15})$/.exec(Buffer.from(text, 'base64url').toString())?.[1])
  .pipe(z.coerce.number('is not a cursor of this list'))

const { v3, v2 } = MAX_PAGE_SIZE
export const CURSOR_QUERY = z.object({ limit: wholeNumber(v3).default(20), cursor: CURSOR.optional() })
export const PAGE_QUERY = z.object({
  page: wholeNumber(1_000_000).default(1),
  limit: wholeNumber(v2).default(v2),
})

type CursorQuery = z.output<typeof CURSOR_QUERY>
type PageQuery = z.output<typeof PAGE_QUERY>

interface List<K extends Kind> {
  readonly kind: K
  readonly view: (record: Records[K], world: World) => object
  readonly where?: Where
  /** Which of those to show. Each is looked at for it: they are few enough in a sandbox. */
  readonly only?: ((record: Records[K]) => boolean) | undefined
}

/** Declares a list that is not filtered. */
export function listing<K extends Kind>(words: string, list: List<K>): Operation {
  return words.startsWith('GET /v3')
    ? operation(words, { input: CURSOR_QUERY }, ({ world, input }) => cursorPage(world, input, list))
    : operation(words, { input: PAGE_QUERY }, ({ world, input }) => numberedPage(world, input, list))
}

export function cursorPage<K extends Kind>(world: World, query: CursorQuery, list: List<K>): object {
  const { limit, cursor: before } = query
  const { kind, view, where, only } = list
  const found = only
    ? world.list(kind, where, { before }).filter(only)
    : world.list(kind, where, { before, limit: limit + 1 })
  const items = found.slice(0, limit)
  const hasMore = found.length > limit
  const nextCursor = hasMore ? cursorAt(items.at(-1)?.seq ?? 0) : null
  return { items: items.map((record) => view(record, world)), pagination: { nextCursor, hasMore } }
}

export function numberedPage<K extends Kind>(world: World, { page, limit }: PageQuery, list: List<K>) {
  const { kind, view, where, only } = list
  const offset = (page - 1) * limit
  const all = only && world.list(kind, where).filter(only)
  const records = all?.slice(offset, offset + limit) ?? world.list(kind, where, { limit, offset })
  const total = all?.length ?? world.count(kind, where)
  const pagination = { page, limit, total, totalPages: Math.ceil(total / limit) }
  return { data: records.map((record) => view(record, world)), pagination }
}
