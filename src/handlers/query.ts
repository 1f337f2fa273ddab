/* The target of a request: its path, parameters, environment, and page of a list. */

import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { ApiKey } from './api-key.js'
import { ID_BOUNDS, issuesOf, NO_ID } from './body.js'
import { describeIssue } from './problem.js'

/** The path of a request target, still percent-encoded. */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

/** The raw query of a request, without the question mark. */
export function queryOf({ url = '' }: IncomingMessage): string {
  const start = url.indexOf('?')
  return start === -1 ? '' : url.slice(start + 1)
}

/**
 * Reads the parameters that a route takes, each given once.
 *
 * @throws LatchkeyError `invalid_request` for an unknown parameter (ignoring a misspelt filter would return the wrong
 * list) unless `schema` allows any; and for a repeated one
 */
export function readParameters(
  req: IncomingMessage,
  takesEnvironment: boolean,
  schema: z.ZodObject | 'any',
): Readonly<Record<string, string>> {
  const names = schema === 'any' ? [] : Object.keys(schema.shape)
  const known = takesEnvironment ? ['environment', ...names] : names
  const query = new URLSearchParams(queryOf(req))
  const given: Record<string, string> = {}
  for (const name of new Set(query.keys())) {
    const [value = '', ...others] = query.getAll(name)
    if (!known.includes(name)) {
      if (schema === 'any') continue
      throw unknownParameter(name, known)
    }
    if (others.length > 0) throw invalidParameter(name, 'is given more than once')
    // What stands in for bytes that are no text, unless it was sent itself.
    if (value.includes('\ufffd') && !isDecodable(queryOf(req)))
      throw invalidParameter(name, 'is not valid percent-encoded UTF-8')
    given[name] = value
  }
  return given
}

function isDecodable(query: string): boolean {
  try {
    return decodeURIComponent(query) !== ''
  } catch {
    return false
  }
}

function unknownParameter(name: string, known: readonly string[]): LatchkeyError {
  const nearest = nearestName(name, known)
  if (nearest !== null) return invalidParameter(name, `is not known here; the closest one is "${nearest}"`)
  const all = known.length === 0 ? 'none' : known.join(', ')
  return invalidParameter(name, `is not known here: this route takes ${all}`)
}

/** More slips than this in a name, and it was meant otherwise. */
const MAX_SLIPS = 3

/** The name that was probably meant by a text that is none, or null: at most a third of its characters may be slips. */
export function nearestName(text: string, names: readonly string[]): string | null {
  const maxSlips = Math.min(MAX_SLIPS, Math.ceil(text.length / 3))
  const [nearest] = names
    // Ahead of the comparison, whose cost grows with the length of what somebody sent.
    .filter((name) => Math.abs(name.length - text.length) <= maxSlips)
    .map((name) => ({ name, slips: slipsBetween(text.toLowerCase(), name.toLowerCase()) }))
    .filter(({ slips }) => slips <= maxSlips)
    .sort((a, b) => a.slips - b.slips)
  return nearest?.name ?? null
}

/** How many characters were left out, added or exchanged: the Levenshtein distance. */
function slipsBetween(text: string, name: string): number {
  let row = Array.from({ length: name.length + 1 }, (_, length) => length)
  for (const [index, typed] of [...text].entries()) {
    const next = [index + 1]
    for (const [column, meant] of [...name].entries()) {
      const [skipped = 0, exchanged = 0, added = 0] = [row[column + 1], row[column], next[column]]
      next.push(Math.min(skipped + 1, added + 1, exchanged + (typed === meant ? 0 : 1)))
    }
    row = next
  }
  return row[name.length] ?? 0
}

/** @throws LatchkeyError `invalid_request` with everything that is wrong */
export function parseParameters<Schema extends z.ZodObject>(
  schema: Schema,
  given: Readonly<Record<string, string>>,
): z.output<Schema> {
  const parsed = schema.safeParse(given, { error: describeIssue })
  if (parsed.success) return parsed.data
  const issues = issuesOf(parsed.error)
  const [{ path, message } = { path: '', message: '' }] = issues
  throw new LatchkeyError('invalid_request', `The parameter "${path}" ${message}.`, { issues })
}

/** The error for an unusable parameter. */
export function invalidParameter(name: string, message: string): LatchkeyError {
  const issues = [{ path: name, message }]
  return new LatchkeyError('invalid_request', `The parameter "${name}" ${message}.`, { issues })
}

/** Every environment that the store may have data of, configured now or not. */
export const BOTH: readonly Environment[] = ['live', 'sandbox']

/**
 * Picks the environment of a request: the named one; else (null) the key's only one, else the only configured one,
 * else live.
 *
 * @throws LatchkeyError `invalid_request` for an unknown name; `forbidden` if the key does not cover it.
 */
export function chooseEnvironment(
  named: string | null,
  endpoints: () => readonly Endpoint[],
  key: ApiKey,
): Environment {
  const environment =
    named ?? onlyOne(key.environments) ?? onlyOne(endpoints().map((one) => one.environment)) ?? 'live'
  if (environment !== 'live' && environment !== 'sandbox') {
    throw invalidParameter('environment', 'is neither "live" nor "sandbox"')
  }
  if (!key.environments.includes(environment)) {
    throw new LatchkeyError('forbidden', `This key is not for the environment "${environment}".`)
  }
  return environment
}

function onlyOne(environments: readonly Environment[]): Environment | null {
  const [first] = environments
  return first !== undefined && environments.every((one) => one === first) ? first : null
}

/**
 * Requires a key for every environment, for work that can't be done or shown in one environment alone.
 *
 * @throws LatchkeyError `forbidden`.
 */
export function requireBoth(key: ApiKey, what = 'This request'): void {
  if (BOTH.every((environment) => key.environments.includes(environment))) return
  throw new LatchkeyError(
    'forbidden',
    `${what} covers live and sandbox: use a key for both environments, or the latchkey command beside the daemon.`,
  )
}

/** ISO 8601 with a time zone, in epoch milliseconds. */
export const instantParameter = z.codec(
  z.iso.datetime({ offset: true, error: 'is not an instant such as 2026-01-31T12:00:00Z' }),
  z.number(),
  { decode: (text) => Date.parse(text), encode: (instant) => new Date(instant).toISOString() },
)

/** An id that can be stored; no other can exist. */
export const idParameter = z.string('is required').refine(isUsableId, NO_ID).meta(ID_BOUNDS)

export const flagParameter = z
  .codec(z.enum(['true', 'false'], 'is neither "true" nor "false"'), z.boolean(), {
    decode: (text) => text === 'true',
    encode: (flag) => (flag ? 'true' : 'false'),
  })
  .meta({ described: { type: 'boolean' } })

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
const LIMIT = `is not a whole number from 1 to ${MAX_LIMIT}`

/** The maximum number of items on a page. */
export const limitParameter = z
  .codec(z.string().regex(/^\d{1,3}$/, LIMIT), z.int().min(1, LIMIT).max(MAX_LIMIT, LIMIT), {
    decode: Number,
    encode: String,
  })
  .default(DEFAULT_LIMIT)
  .meta({ described: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT } })

/**
 * A cursor: the place where a page ends and the next one begins; opaque to callers. Decoding is lenient, so a cursor
 * is valid only if encoding its place gives the same text.
 * @param read returns null if there is no such place
 */
export function placeIn<Place>(read: (text: string) => Place | null, write: (place: Place) => string) {
  const encode = (place: Place): string => Buffer.from(write(place), 'utf8').toString('base64url')
  return z.codec(z.string(), z.custom<Place>(), {
    encode,
    decode(cursor, context) {
      const place = read(Buffer.from(cursor, 'base64url').toString('utf8'))
      if (place !== null && encode(place) === cursor) return place
      context.issues.push({
        code: 'custom',
        message: 'is not a cursor of this list: use the one from the last page',
        input: cursor,
      })
      return z.NEVER
    },
  })
}

/** The cursor of a list ordered by id: the page starts after this id. */
export const idPlace = placeIn(
  (id) => (isUsableId(id) ? id : null),
  (id: string) => id,
)

/** The parameters of a list ordered by id. */
export const PAGE = { limit: limitParameter, cursor: idPlace.optional() }

/** A page of a list, as JSON. */
export function pageOf<Item extends z.ZodType, Place extends z.ZodType>(item: Item, place: Place) {
  return z.object({
    items: z.array(item),
    pagination: z.object({ nextCursor: place.nullable(), hasMore: z.boolean() }),
  })
}

/** A page of `found`, which holds one item more than the page if the list goes on. */
export function firstOf<Item, Place>(found: readonly Item[], limit: number, placeOf: (item: Item) => Place) {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return { items, pagination: paginated(found.length > limit && last !== undefined ? placeOf(last) : null) }
}

/** @param next null at the end of the list */
export function paginated<Place>(next: Place | null) {
  return { nextCursor: next, hasMore: next !== null }
}
