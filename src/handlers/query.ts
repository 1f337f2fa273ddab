import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { ApiKey } from './api-key.js'
import { nearestName } from './nearest-name.js'

const isoInstant = z.iso.datetime({ offset: true })

/**
 * The query of a request. `known`: the parameters that its route takes.
 *
 * @throws LatchkeyError `invalid_request` for another: what is asked with a slip in a name would get an answer that
 * looks right, and is not.
 */
export function readQuery(req: IncomingMessage, known: readonly string[]): URLSearchParams {
  const query = new URLSearchParams(queryOf(req))
  for (const name of query.keys()) {
    if (!known.includes(name)) throw unknownParameter(name, known)
  }
  return query
}

/** As it was sent, without the question mark. */
export function queryOf({ url = '' }: IncomingMessage): string {
  const start = url.indexOf('?')
  return start === -1 ? '' : url.slice(start + 1)
}

function unknownParameter(name: string, known: readonly string[]): LatchkeyError {
  const nearest = nearestName(name, known)
  if (nearest !== null) return invalidParameter(name, `is not known here, but "${nearest}" is`)
  const all = known.length === 0 ? 'none' : known.join(', ')
  return invalidParameter(name, `is not known here, which takes ${all}`)
}

/**
 * The one value of a parameter, or null.
 *
 * @throws LatchkeyError `invalid_request` if it is given twice: no one knows which was meant.
 */
export function readParameter(query: URLSearchParams, name: string): string | null {
  const [value, ...others] = query.getAll(name)
  if (others.length > 0) throw invalidParameter(name, 'is given more than once')
  return value ?? null
}

/**
 * An instant given as ISO 8601 with a time zone, in epoch milliseconds, or null.
 *
 * @throws LatchkeyError `invalid_request` for anything else, and if it is given twice.
 */
export function readInstant(query: URLSearchParams, name: string): number | null {
  const text = readParameter(query, name)
  if (text === null) return null
  if (!isoInstant.safeParse(text).success) {
    throw invalidParameter(name, 'is not an instant such as 2026-01-31T12:00:00Z')
  }
  return Date.parse(text)
}

/** The failure of a request whose parameter can't be used. */
export function invalidParameter(name: string, message: string): LatchkeyError {
  const issues = [{ path: name, message }]
  return new LatchkeyError('invalid_request', `The parameter "${name}" ${message}.`, { issues })
}

/** The whole query of a route that takes nothing else. */
export const ENVIRONMENT_ONLY = ['environment'] as const

/** Every environment that the store may hold data of, configured today or not. */
const BOTH: readonly Environment[] = ['live', 'sandbox']

/**
 * The environment that a question is about: `?environment=`; left out, the only one of the key, else the only one
 * that is configured, else live.
 *
 * @throws LatchkeyError `invalid_request` for another word; `forbidden` if it is outside the key's.
 */
export function readEnvironment(
  query: URLSearchParams,
  configured: readonly Environment[],
  key: ApiKey,
): Environment {
  return chooseEnvironment(readParameter(query, 'environment'), () => configured, key)
}

/** The same of the environment that is named; null: none is. */
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

/**
 * The environments that an answer takes in: the one that is named, or all that the key is for.
 *
 * @throws LatchkeyError `invalid_request`, `forbidden`.
 */
export function shownEnvironments(
  query: URLSearchParams,
  configured: readonly Environment[],
  key: ApiKey,
): readonly Environment[] {
  return query.has('environment') ? [readEnvironment(query, configured, key)] : key.environments
}

/** Whether a key is for every environment. */
export function isForBoth(key: ApiKey): boolean {
  return BOTH.every((environment) => key.environments.includes(environment))
}

/**
 * Sees that a key is for every environment, for what can't be done, or shown, in one of them alone.
 *
 * @throws LatchkeyError `forbidden`.
 */
export function requireBoth(key: ApiKey, what = 'This request'): void {
  if (isForBoth(key)) return
  throw new LatchkeyError(
    'forbidden',
    `${what} covers live and sandbox: use a key for both environments, or the latchkey command beside the daemon.`,
  )
}

function onlyOne(environments: readonly Environment[]): Environment | null {
  const [first] = environments
  return first !== undefined && environments.every((one) => one === first) ? first : null
}

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
