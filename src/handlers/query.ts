/* What the target of a request says: its path, its parameters, its environment, and which page of a list. */

import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { ApiKey } from './api-key.js'
import { issuesOf } from './body.js'

/** The path of a request target, still percent-encoded. */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

/** The query of a request as it was sent, without the question mark. */
export function queryOf({ url = '' }: IncomingMessage): string {
  const start = url.indexOf('?')
  return start === -1 ? '' : url.slice(start + 1)
}

/**
 * The parameters of a request that its route takes, each once.
 *
 * @throws LatchkeyError `invalid_request` for an unknown one (ignoring a misspelt filter would return the wrong list)
 * unless `schema` allows any; and for one that is given twice
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
    given[name] = value
  }
  return given
}

function unknownParameter(name: string, known: readonly string[]): LatchkeyError {
  const nearest = nearestName(name, known)
  if (nearest !== null) return invalidParameter(name, `is not known here, but "${nearest}" is`)
  const all = known.length === 0 ? 'none' : known.join(', ')
  return invalidParameter(name, `is not known here, which takes ${all}`)
}

/** More slips than this in a name, and it was meant otherwise. */
const MAX_SLIPS = 3

/** The name that was probably meant by a text that is none, or null: at most a third of its characters may be slips. */
function nearestName(text: string, names: readonly string[]): string | null {
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
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  const issues = issuesOf(parsed.error)
  const [{ path, message } = { path: '', message: '' }] = issues
  throw new LatchkeyError('invalid_request', `The parameter "${path}" ${message}.`, { issues })
}

/** The failure of a request whose parameter can't be used. */
export function invalidParameter(name: string, message: string): LatchkeyError {
  const issues = [{ path: name, message }]
  return new LatchkeyError('invalid_request', `The parameter "${name}" ${message}.`, { issues })
}

/** Every environment that the store may hold data of, configured today or not. */
export const BOTH: readonly Environment[] = ['live', 'sandbox']

/**
 * The environment that a question is about: the one that is named; left out (null), the only one of the key, else the
 * only one that is configured, else live.
 *
 * @throws LatchkeyError `invalid_request` for another word; `forbidden` if it is outside the key's.
 */
export function chooseEnvironment(
  named: string | null,
  configured: () => readonly Environment[],
  key: ApiKey,
): Environment {
  const environment = named ?? onlyOne(key.environments) ?? onlyOne(configured()) ?? 'live'
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
 * Sees that a key is for every environment, for what can't be done, or shown, in one of them alone.
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

const USABLE = 'is not a text of 1 to 255 characters without control characters'

/** What can be stored: nothing else needs to be looked for. */
export const idParameter = z.string('is required').refine(isUsableId, USABLE)
/** The same in a body. */
export const detailText = z.string().refine(isUsableId, USABLE)

export const flagParameter = z.codec(
  z.enum(['true', 'false'], 'is neither "true" nor "false"'),
  z.boolean(),
  { decode: (text) => text === 'true', encode: (flag) => (flag ? 'true' : 'false') },
)

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
const LIMIT = `is not a whole number from 1 to ${MAX_LIMIT}`

/** How many items a page holds at most. */
export const limitParameter = z
  .codec(z.string().regex(/^\d{1,3}$/, LIMIT), z.int().min(1, LIMIT).max(MAX_LIMIT, LIMIT), {
    decode: Number,
    encode: String,
  })
  .default(DEFAULT_LIMIT)

/**
 * The place in a list at which a page ends, and the next one begins; opaque to callers. Decoding forgives whatever it is
 * given: only a text that this place would get again is one.
 * @param read null: there is no such place
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

/** In a list that is ordered by id: behind this one. */
export const idPlace = placeIn(
  (id) => (isUsableId(id) ? id : null),
  (id: string) => id,
)

/** The parameters of a list that is ordered by id. */
export const PAGE = { limit: limitParameter, cursor: idPlace.optional() }

/** A page of a list, as JSON. */
export function pageOf<Item extends z.ZodType, Place extends z.ZodType>(item: Item, place: Place) {
  return z.object({
    items: z.array(item),
    pagination: z.object({ nextCursor: place.nullable(), hasMore: z.boolean() }),
  })
}

/** The first of what was found, which may be one more than the page holds: it tells whether the list goes on. */
export function firstOf<Item, Place>(found: readonly Item[], limit: number, placeOf: (item: Item) => Place) {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return { items, pagination: paginated(found.length > limit && last !== undefined ? placeOf(last) : null) }
}

/** @param next null: the list ends here */
export function paginated<Place>(next: Place | null) {
  return { nextCursor: next, hasMore: next !== null }
}
