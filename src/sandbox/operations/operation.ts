/* What an operation is: one row of the table from which routes, checks, paging and envelopes follow. */

import { z } from 'zod'
import type { ServiceCode } from '../../provider/service-codes.js'
import { refuse } from '../codes.js'
import type { Courier } from '../courier.js'
import type { Kind, Records } from '../model.js'
import type { Placed, Span, State, Where } from '../state.js'
import type { Acting, World } from '../world.js'
import { CURSOR_QUERY, cursorAt, PAGE_QUERY } from './fields.js'

/** What operations reach, beside the world. */
export interface Engine extends Acting {
  readonly courier: Courier
  readonly deliveries: Pick<State, 'listDeliveries' | 'findDelivery'>
  /** Resolves once all that fell due up to that instant is done, and delivered or given up. */
  advance(to: number): Promise<void>
}

/** One request, checked. */
export interface Call<Body = unknown, Query = unknown> extends Engine {
  readonly params: Readonly<Record<string, string>>
  /** The first of the path's parameters; empty if it has none. */
  readonly id: string
  readonly body: Body
  readonly query: Query
  /** Where the sandbox is reached, without a slash at its end. */
  readonly baseUrl: string
}

/** The same, by the schemas that check it. */
export type CallOf<Body extends z.ZodType, Query extends z.ZodType = z.ZodType> = Call<
  z.output<Body>,
  z.output<Query>
>

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  /** `open` needs no key, and has no envelope. */
  readonly generation: 'v3' | 'v2' | 'sandbox' | 'open'
  /** Of a success. */
  readonly status: number
  /** Which requests a key makes safe to repeat. */
  readonly idempotency: 'none' | 'v3' | 'v2'
  readonly body: z.ZodType
  readonly query: z.ZodType
  /** What is waited for first, outside of the act. */
  before?(call: Call): Promise<unknown>
  /** Does the work in one act, and answers. */
  run(call: Call): unknown
  /** What is waited for before the answer is sent. */
  after?(call: Call): Promise<unknown>
}

const NOTHING = z.object({})
type Nothing = typeof NOTHING

interface Facts<Body extends z.ZodType, Query extends z.ZodType>
  extends Partial<Pick<Operation, 'status' | 'idempotency' | 'after'>> {
  readonly body?: Body
  readonly query?: Query
  readonly before?: (call: CallOf<Body, Query>) => Promise<unknown>
}

/** Declares an operation by its words, such as `POST /v3/products`. @param view shows what was done */
export function operation<Done, Body extends z.ZodType = Nothing, Query extends z.ZodType = Nothing>(
  words: string,
  facts: Facts<Body, Query>,
  work: (call: CallOf<Body, Query>) => Done,
  view: (done: Done, world: World) => unknown = (done) => done,
): Operation {
  const [method, path = ''] = words.split(' ') as [Operation['method'], string]
  const generation = path.startsWith('/v3') ? 'v3' : path.startsWith('/api') ? 'v2' : 'sandbox'
  return {
    method,
    path,
    generation: path === '/health' ? 'open' : generation,
    status: 200,
    idempotency: method === 'POST' && generation !== 'v2' ? 'v3' : 'none',
    body: NOTHING,
    query: NOTHING,
    run: (call: CallOf<Body, Query>) => view(work(call), call.world),
    ...facts,
  }
}

/** Which records of a kind a list shows, the newest first; by default all. */
interface Choice<K extends Kind, Query extends z.ZodType> {
  readonly query?: Query
  readonly where?: (call: CallOf<Nothing, Query>) => Where
  /** Which of those to show. Each is looked at for it: they are few enough in a sandbox. */
  readonly only?: (call: CallOf<Nothing, Query>) => ((record: Records[K]) => boolean) | undefined
}

/** Declares a list: by cursor in v3, by page in v2. */
export function listing<K extends Kind, Query extends z.ZodType = Nothing>(
  words: string,
  kind: K,
  view: (record: Records[K], world: World) => object,
  {
    query = NOTHING as z.ZodType as Query,
    where = () => ({}),
    only = () => undefined,
  }: Choice<K, Query> = {},
): Operation {
  if (words.startsWith('GET /api')) {
    return operation(words, { query: PAGE_QUERY.and(query) }, (call) =>
      recordPage(call, kind, view, where(call), only(call)),
    )
  }
  return operation(words, { query: CURSOR_QUERY.and(query) }, (call) => {
    const isShown = only(call)
    const placed = (span: Span) => call.world.placed(kind, where(call), span)
    const read = (span: Span) =>
      isShown ? placed({ before: span.before }).filter(({ item }) => isShown(item)) : placed(span)
    return cursorPage(call.query, read, (record) => view(record, call.world))
  })
}

/** One page of a list of v3. @param read gives items with their places */
export function cursorPage<Item>(
  { limit, cursor }: z.output<typeof CURSOR_QUERY>,
  read: (span: Span) => readonly Placed<Item>[],
  view: (item: Item) => object,
): object {
  const found = read({ before: cursor, limit: limit + 1 })
  const items = found.slice(0, limit)
  const hasMore = found.length > limit
  const nextCursor = hasMore ? cursorAt(items.at(-1)?.place ?? 0) : null
  return { items: items.map(({ item }) => view(item)), pagination: { nextCursor, hasMore } }
}

/** One page of a list of v2. */
export function recordPage<K extends Kind>(
  { world, query: { page, limit } }: Call<unknown, z.output<typeof PAGE_QUERY>>,
  kind: K,
  view: (record: Records[K], world: World) => object,
  where: Where,
  isShown?: (record: Records[K]) => boolean,
) {
  const offset = (page - 1) * limit
  const shown = isShown && world.list(kind, where).filter(isShown)
  const records = shown?.slice(offset, offset + limit) ?? world.list(kind, where, { limit, offset })
  const total = shown?.length ?? world.count(kind, where)
  const pagination = { page, limit, total, totalPages: Math.ceil(total / limit) }
  return { data: records.map((record) => view(record, world)), pagination }
}

export function found<K extends Kind>(world: World, kind: K, id: string, code: ServiceCode): Records[K] {
  if (id === '' || id.length > 255 || /\p{Cc}/u.test(id)) {
    refuse('INVALID_ID', 'The id is empty, too long, or has control characters.')
  }
  return world.find(kind, id) ?? refuse(code, `There is no ${kind} ${id}.`)
}

/** The record that the path names. */
export const named =
  <K extends Kind>(kind: K, code: ServiceCode) =>
  ({ world, id }: Call): Records[K] =>
    found(world, kind, id, code)

/** Counts without having all records in memory. */
export function countOf<K extends Kind>(
  world: World,
  kind: K,
  isCounted: (record: Records[K]) => boolean,
): number {
  let count = 0
  for (const record of world.each(kind)) if (isCounted(record)) count += 1
  return count
}

/** The fields that an update names. @throws {ServiceError} `MISSING_FIELD` if it names none */
export function given<Body extends object>(
  body: Body,
): { readonly [Name in keyof Body]: Exclude<Body[Name], undefined> } {
  const entries = Object.entries(body).filter(([, value]) => value !== undefined)
  if (entries.length === 0) refuse('MISSING_FIELD', 'Send at least one field to change.')
  return Object.fromEntries(entries) as ReturnType<typeof given<Body>>
}
