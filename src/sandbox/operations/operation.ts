/* What an operation is: one row of the table from which routes, checks, paging and envelopes follow. */

import { z } from 'zod'
import { parseInstant } from '../../provider/instant.js'
import { type Code, invalidFields, ServiceError } from '../codes.js'
import type { Courier } from '../courier.js'
import type { Kind, Records } from '../model.js'
import type { Acting, Placed, Where, World } from '../world.js'

/** What the operations beside the documents reach, which are not done within one act. */
export interface Engine extends Acting {
  readonly courier: Courier
  /** Resolves once all that fell due up to that instant is done, and delivered or given up. */
  advance(to: number): Promise<void>
}

export interface Request<Body, Query> {
  readonly params: Readonly<Record<string, string>>
  readonly body: Body
  readonly query: Query
  /** Where the sandbox is reached, without a slash at its end. */
  readonly baseUrl: string
}

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  /** `open` needs no key. */
  readonly generation: 'v3' | 'v2' | 'sandbox' | 'open'
  /** Of a success. */
  readonly status: number
  /** `envelope`, but for the few answers that have none. */
  readonly form: 'envelope' | 'json' | 'pdf'
  /** Which requests a key makes safe to repeat. */
  readonly idempotency: 'none' | 'v3' | 'v2'
  readonly body: z.ZodType
  readonly query: z.ZodType
  run(engine: Engine, request: Request<unknown, unknown>, keep: Keep): Promise<unknown>
}

/** Is handed what was answered within the act that did it, so that both are kept or neither. */
export type Keep = (world: World, data: unknown) => void

const NOTHING = z.object({})
type Nothing = typeof NOTHING

type Facts<Body extends z.ZodType, Query extends z.ZodType> = Partial<
  Pick<Operation, 'status' | 'form' | 'idempotency'> & { readonly body: Body; readonly query: Query }
>

/** Declares an operation by its words, such as `POST /v3/products`; it is done in one act. */
export function operation<Body extends z.ZodType = Nothing, Query extends z.ZodType = Nothing>(
  words: string,
  run: (world: World, request: Request<z.output<Body>, z.output<Query>>) => unknown,
  facts: Facts<Body, Query> = {},
): Operation {
  const inOneAct = async ({ act }: Engine, request: Request<z.output<Body>, z.output<Query>>, keep: Keep) =>
    act((world) => {
      const data = run(world, request)
      keep(world, data)
      return data
    })
  return longOperation(words, inOneAct, facts)
}

/** The same for what waits for something outside. */
export function longOperation<Body extends z.ZodType = Nothing, Query extends z.ZodType = Nothing>(
  words: string,
  run: (engine: Engine, request: Request<z.output<Body>, z.output<Query>>, keep: Keep) => Promise<unknown>,
  { status = 200, form = 'envelope', idempotency, body, query }: Facts<Body, Query> = {},
): Operation {
  const [method, path = ''] = words.split(' ') as [Operation['method'], string]
  const generation = path.startsWith('/v3') ? 'v3' : path.startsWith('/api') ? 'v2' : 'sandbox'
  return {
    ...{ method, path, status, form },
    generation: path === '/health' ? 'open' : generation,
    idempotency: idempotency ?? (method === 'POST' && generation !== 'v2' ? 'v3' : 'none'),
    body: body ?? NOTHING,
    query: query ?? NOTHING,
    run: (engine, request, keep) => run(engine, request as Request<z.output<Body>, z.output<Query>>, keep),
  }
}

// What many requests have in common

export const PRICE = z.string().regex(/^[1-9]\d{0,9}$/, 'must be a positive integer as text, in cents')
export const TEXT = z.string().min(1).max(255)
export const WEB_URL = z.url({ protocol: /^https?$/ })
export const INSTANT = z.string().transform((text, context) => {
  const instant = parseInstant(text)
  if (instant !== null) return instant
  context.addIssue({ code: 'custom', message: 'must be an ISO 8601 time' })
  return z.NEVER
})
/** One line of text, without control characters. */
export const NAME = z.string().regex(/^\P{Cc}*$/u, 'must not contain control characters')

const DURATION = /^(\d{1,6})([smhd])$/
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
export const DURATION_MS = z
  .string()
  .regex(DURATION, 'must be a duration such as 90s, 15m, 2h or 30d')
  .transform((text) => {
    const [, count, unit = ''] = DURATION.exec(text) ?? []
    return Number(count) * (UNIT_MS[unit] ?? 0)
  })

const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, `must be an integer from ${least} to ${most}`)
    .transform(Number)
    .pipe(z.int().min(least).max(most))

// Lists by cursor, as in v3

const CURSOR = z
  .string()
  .regex(/^[\w-]{1,20}$/, 'is not a cursor of this list')
  .transform((text, context) => {
    const place = /^before (\d+)$/.exec(Buffer.from(text, 'base64url').toString())?.[1]
    if (place !== undefined) return Number(place)
    context.addIssue({ code: 'custom', message: 'is not a cursor of this list' })
    return z.NEVER
  })
export const CURSOR_QUERY = z.object({ limit: wholeNumber(1, 100).default(20), cursor: CURSOR.optional() })

/** One page of a list, the newest first. @param read gives items with their places */
export function cursorPage<Item>(
  { limit, cursor }: z.output<typeof CURSOR_QUERY>,
  read: (span: { readonly before: number | undefined; readonly limit: number }) => readonly Placed<Item>[],
  view: (item: Item) => object,
): object {
  const found = read({ before: cursor, limit: limit + 1 })
  const items = found.slice(0, limit)
  const hasMore = found.length > limit
  const last = items.at(-1)?.place
  const nextCursor = hasMore ? Buffer.from(`before ${last}`).toString('base64url') : null
  return { items: items.map(({ item }) => view(item)), pagination: { nextCursor, hasMore } }
}

// Lists by page, as in v2

export const PAGE_QUERY = z.object({
  page: wholeNumber(1, 1_000_000).default(1),
  limit: wholeNumber(1, 25).default(25),
})

type PageQuery = z.output<typeof PAGE_QUERY>

export const pagination = ({ page, limit }: PageQuery, total: number) => ({
  ...{ page, limit, total },
  totalPages: Math.ceil(total / limit),
})

/** One page of all records of a kind. */
export function recordPage<K extends Kind>(
  world: World,
  kind: K,
  where: Where,
  query: PageQuery,
  view: (record: Records[K]) => object,
): object {
  const { page, limit } = query
  const found = world.list(kind, where, { limit, offset: (page - 1) * limit })
  return { data: found.map(view), pagination: pagination(query, world.count(kind, where)) }
}

// Records named in a path

export function found<K extends Kind>(world: World, kind: K, id: string | undefined, code: Code): Records[K] {
  if (id === undefined || id === '' || id.length > 255 || /\p{Cc}/u.test(id)) {
    throw new ServiceError('INVALID_ID', 'The id is empty, too long, or has control characters.')
  }
  const record = world.find(kind, id)
  if (record !== undefined) return record
  throw new ServiceError(code, `There is no ${kind} ${id}.`)
}

/** The fields that an update names. @throws {ServiceError} `MISSING_FIELD` if it names none */
export function given<Body extends object>(
  body: Body,
): { readonly [Name in keyof Body]: Exclude<Body[Name], undefined> } {
  const entries = Object.entries(body).filter(([, value]) => value !== undefined)
  if (entries.length === 0) throw new ServiceError('MISSING_FIELD', 'Send at least one field to change.')
  return Object.fromEntries(entries) as ReturnType<typeof given<Body>>
}

/** What zod found wrong, by field. */
export function validated<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const { data, error } = schema.safeParse(value)
  if (error === undefined) return data as z.output<Schema>
  throw invalidFields(
    ...error.issues.map(({ path, message }) => ({
      field: path.join('.') || 'body',
      message: plain(message),
    })),
  )
}

/** `Invalid input: expected string` becomes the clause that follows a field's name. */
const plain = (message: string): string => message.replace(/^Invalid input: expected/, 'must be')
