import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
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
