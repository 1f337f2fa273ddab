import { z } from 'zod'
import { ERRORS, isLatchkeyError } from '../errors.js'

/** RFC 9457. */
export const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
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

const BUG = { code: 'internal_error', message: 'The cause is in the log.', retryAfterSeconds: null }

/** The answer to a failure: code and message of an expected one, no more. */
export function problemOf(error: unknown): Answer {
  const kind = isLatchkeyError(error) ? ERRORS[error.code] : null
  const expected = isLatchkeyError(error) && kind !== null
  const [status, title] = kind ?? [500, 'Internal error']
  const { code, message: detail, retryAfterSeconds } = expected ? error : BUG
  const hasIssues = expected && (code === 'invalid_request' || code === 'config_invalid')
  const json: z.input<typeof problem> = { type: `urn:latchkey:problem:${code}`, title, status, detail, code }
  return {
    status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      // Short: a full queue empties in moments, and the sender backs off by itself after that.
      ...(status === 503 && { 'Retry-After': '2' }),
      ...(status === 401 && {
        'WWW-Authenticate': code === 'unauthorized' || code === 'key_expired' ? 'Bearer' : 'Signature',
      }),
      ...(retryAfterSeconds !== null && { 'Retry-After': String(retryAfterSeconds) }),
    },
    body: JSON.stringify(hasIssues ? { ...json, errors: error.issues } : json),
    expected,
  }
}
