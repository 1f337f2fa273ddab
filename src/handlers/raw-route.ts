import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { type Issue, LatchkeyError } from '../errors.js'
import type { MountedPath } from './mount.js'
import type { RawHandler } from './route.js'
import { answerFailure } from './send.js'

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

/** Puts a handler at a path, such as `/entitlements/:customerId`, and answers for its failures. */
export function createRoute<Pattern extends string>(
  pattern: Pattern,
  handler: RawHandler<ParamNames<Pattern>>,
  log: Logger,
): MountedPath {
  const names = namesIn(pattern)

  function serve(req: IncomingMessage, res: ServerResponse, path: string): null {
    const fail = (error: unknown): void => answerFailure(res, error, log)
    try {
      // These are the names of the pattern, which no type can follow.
      const params = decodeParams(names, path) as Record<ParamNames<Pattern>, string>
      handler(req, res, params)?.catch(fail)
    } catch (error) {
      fail(error)
    }
    return null
  }

  return { path: pattern, serve }
}

/** Leaves every other method to another route: a customer may be called by the name of such a question. */
export function onlyPost({ path, serve }: MountedPath): MountedPath {
  return { path, serve: (req, res, given) => (req.method === 'POST' ? serve(req, res, given) : 'POST') }
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

/** The names that a pattern binds, with the place of each among the segments of a path. */
function namesIn(pattern: string): readonly (readonly [place: number, name: string])[] {
  return [...pattern.split('/').entries()]
    .filter(([, segment]) => segment.startsWith(':'))
    .map(([place, segment]) => [place, segment.slice(1)])
}

/**
 * Decodes the ids of a path, segment by segment: `..%2f` is one segment and stays one.
 *
 * @throws LatchkeyError `invalid_request` for bad percent-encoding, a control character, or an id that is
 * too long to exist.
 */
function decodeParams(names: ReturnType<typeof namesIn>, path: string): Record<string, string> {
  const decoded: Record<string, string> = {}
  if (names.length === 0) return decoded
  const segments = path.split('/')
  const issues: Issue[] = []
  for (const [place, name] of names) {
    const id = decodeSegment(segments[place] ?? '')
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
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}
