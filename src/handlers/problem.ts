/* What is wrong with a value that somebody wrote, in the config or in a request, and how a failed request is answered. */

import { z } from 'zod'
import { ERRORS, type ErrorCode, isLatchkeyError } from '../errors.js'

export type Path = readonly PropertyKey[]

/** A problem with a value, or a probable mistake, and its place. */
export interface Problem {
  readonly path: Path
  readonly message: string
}

/** Describes the problem with a value, and never shows the value, which may be a secret. */
export const describeIssue: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined
        ? 'is required'
        : `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return `must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.join(', ')}`
    case 'too_small':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `must be at least ${issue.minimum}`
        : 'is empty'
    case 'too_big':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `must be at most ${issue.maximum}`
        : `is longer than ${issue.maximum}`
    default:
      return undefined
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a text',
  int: 'a whole number',
  number: 'a number',
  object: 'an object',
  record: 'an object',
  array: 'a list',
  boolean: 'true or false',
}

/** One problem each: per unknown key, and for alternatives only the intended one. */
export function problemsIn(error: z.ZodError): Problem[] {
  return error.issues.flatMap((issue) => flatten(issue, []))
}

function flatten(issue: z.core.$ZodIssue, parent: Path): Problem[] {
  const path = [...parent, ...issue.path]
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({ path: [...path, key], message: 'is not a known key' }))
    case 'invalid_union': {
      const meant = issue.errors.find((branch) => branch.every((inner) => inner.path.length > 0))
      return meant?.flatMap((inner) => flatten(inner, path)) ?? [{ path, message: issue.message }]
    }
    case 'invalid_key':
      return issue.issues.map(({ message }) => ({ path, message }))
    default:
      return [{ path, message: issue.message }]
  }
}

/** RFC 9457. */
export const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  /** As `X-Request-Id`; the lines of the log about this request have it too. */
  requestId: z.string(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).exactOptional(),
})

/** A problem, ready to send. */
interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** False: a bug, which the answer says nothing about. */
  readonly expected: boolean
}

/** The codes of requests without a right key; the others are of deliveries. */
const OF_KEYS: readonly string[] = [
  'unauthorized',
  'key_expired',
  'session_ended',
] satisfies readonly ErrorCode[]

const BUG = { code: 'internal_error', message: 'The cause is in the log.', retryAfterSeconds: null }

/** The answer to a failure: code and message of an expected one, no more. */
export function problemOf(error: unknown, requestId: string): Answer {
  const kind = isLatchkeyError(error) ? ERRORS[error.code] : null
  const expected = isLatchkeyError(error) && kind !== null
  const [status, title] = kind ?? [500, 'Internal error']
  const { code, message: detail, retryAfterSeconds } = expected ? error : BUG
  const hasIssues = expected && code === 'invalid_request'
  const type = `urn:latchkey:problem:${code}`
  const json: z.input<typeof problem> = { type, title, status, detail, code, requestId }
  return {
    status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      // Short: a full queue empties in moments, and the sender backs off by itself after that.
      ...(status === 503 && { 'Retry-After': '2' }),
      ...(status === 401 && {
        'WWW-Authenticate': OF_KEYS.includes(code) ? 'Bearer' : 'Signature',
      }),
      ...(retryAfterSeconds !== null && { 'Retry-After': String(retryAfterSeconds) }),
    },
    body: JSON.stringify(hasIssues ? { ...json, errors: error.issues } : json),
    expected,
  }
}
