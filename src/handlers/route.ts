import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { type Issue, LatchkeyError } from '../errors.js'
import { answerFailure } from './answer-failure.js'
import type { RawHandler, Route } from './raw-handler.js'

/** No stored id is longer, or holds a control character: events with such ids are quarantined. */
const MAX_ID_LENGTH = 255
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to refuse.
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/

/** The names that a pattern binds: `'/entitlements/:customerId'` binds `customerId`. */
export type ParamNames<Pattern extends string> = Pattern extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : Pattern extends `${string}:${infer Name}`
    ? Name
    : never

/** The path of a request target, still percent-encoded. */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

/** Puts a handler at a path, such as `/entitlements/:customerId`, and answers for its failures. */
export function createRoute<Pattern extends string>(
  pattern: Pattern,
  handler: RawHandler<ParamNames<Pattern>>,
  log: Logger,
): Route {
  const match = createPathMatcher(pattern)

  async function serve(req: IncomingMessage, res: ServerResponse, encoded: Record<string, string>) {
    try {
      // The matcher binds exactly the names of the pattern, which no type can follow.
      await handler(req, res, decodeParams(encoded) as Record<ParamNames<Pattern>, string>)
    } catch (error) {
      answerFailure(res, error, log)
    }
  }

  return (req, res) => {
    const encoded = match(pathOf(req.url ?? ''))
    if (encoded === null) return false
    void serve(req, res, encoded)
    return true
  }
}

/**
 * Lets only these methods through.
 *
 * @throws LatchkeyError `method_not_allowed`, with `Allow` already on the answer.
 */
export function requireMethod(req: IncomingMessage, res: ServerResponse, ...allowed: string[]): void {
  if (req.method !== undefined && allowed.includes(req.method)) return
  res.setHeader('Allow', allowed.join(', '))
  throw new LatchkeyError('method_not_allowed', `This route takes ${allowed.join(' and ')} only.`)
}

/** Matches a path, segment by segment, before any decoding: `..%2f` is one segment and stays one. */
export function createPathMatcher(
  pattern: string,
): (path: string) => Readonly<Record<string, string>> | null {
  const expected = pattern.split('/')
  return (path) => {
    const segments = path.split('/')
    if (segments.length !== expected.length) return null
    const encoded: Record<string, string> = {}
    for (const [index, name] of expected.entries()) {
      const segment = segments[index] ?? ''
      if (name.startsWith(':') && segment !== '') encoded[name.slice(1)] = segment
      else if (name !== segment) return null
    }
    return encoded
  }
}

/**
 * Decodes the ids of a matched path.
 *
 * @throws LatchkeyError `invalid_request` for bad percent-encoding, a control character, or an id that is
 * too long to exist.
 */
export function decodeParams(encoded: Readonly<Record<string, string>>): Record<string, string> {
  const decoded: Record<string, string> = {}
  const issues: Issue[] = []
  for (const [name, segment] of Object.entries(encoded)) {
    const id = decodeSegment(segment)
    if (id === null) issues.push({ path: name, message: 'is not valid percent-encoded UTF-8' })
    else if (id.length > MAX_ID_LENGTH)
      issues.push({ path: name, message: `is over ${MAX_ID_LENGTH} characters` })
    else if (CONTROL_CHARACTER.test(id)) issues.push({ path: name, message: 'holds a control character' })
    else decoded[name] = id
  }
  if (issues.length > 0) throw new LatchkeyError('invalid_request', 'The path is not valid.', { issues })
  return decoded
}

function decodeSegment(segment: string): string | null {
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}
