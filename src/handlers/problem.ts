import { type ErrorCode, isLatchkeyError } from '../errors.js'

interface ProblemKind {
  readonly status: number
  readonly title: string
  readonly headers?: Readonly<Record<string, string>>
}

const SIGNATURE_CHALLENGE = { 'WWW-Authenticate': 'Signature' }

/** Seconds. Short: a full queue empties in moments, and the sender backs off by itself after that. */
const RETRY_SOON = { 'Retry-After': '2' }

/** The status of every expected failure. Null: it is never the answer to a request, so there it is a bug. */
const KIND_OF_CODE: Readonly<Record<ErrorCode, ProblemKind | null>> = {
  signature_missing: { status: 401, title: 'Signature missing', headers: SIGNATURE_CHALLENGE },
  signature_invalid: { status: 401, title: 'Signature invalid', headers: SIGNATURE_CHALLENGE },
  timestamp_invalid: { status: 401, title: 'Timestamp invalid', headers: SIGNATURE_CHALLENGE },
  timestamp_out_of_tolerance: {
    status: 401,
    title: 'Timestamp out of tolerance',
    headers: SIGNATURE_CHALLENGE,
  },
  endpoint_not_found: { status: 404, title: 'Endpoint not found' },
  route_not_found: { status: 404, title: 'Route not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  body_too_large: { status: 413, title: 'Body too large' },
  body_incomplete: { status: 408, title: 'Request incomplete' },
  headers_too_large: { status: 431, title: 'Headers too large' },
  encoding_not_supported: { status: 415, title: 'Content encoding not supported' },
  media_type_not_supported: { status: 415, title: 'Media type not supported' },
  rate_limited: { status: 429, title: 'Too many failed requests' },
  not_stored: { status: 503, title: 'Not stored', headers: RETRY_SOON },
  store_unavailable: { status: 503, title: 'Store unavailable', headers: RETRY_SOON },
  unauthorized: { status: 401, title: 'Unauthorized', headers: { 'WWW-Authenticate': 'Bearer' } },
  forbidden: { status: 403, title: 'Forbidden' },
  invalid_request: { status: 400, title: 'Invalid request' },
  customer_not_found: { status: 404, title: 'Customer not found' },
  event_not_found: { status: 404, title: 'Event not found' },
  body_removed: { status: 410, title: 'Body removed' },
  config_invalid: { status: 500, title: 'A secret is missing' },
  config_missing: null,
  store_in_use: null,
  store_missing: null,
  store_replaced: null,
  writer_ended: null,
  schema_too_new: null,
  backup_exists: null,
  backup_missing: null,
  backup_damaged: null,
  backup_failed: null,
  not_a_backup: null,
  cursor_reset: { status: 410, title: 'Cursor reset' },
  rebuild_interrupted: null,
  rebuild_running: { status: 409, title: 'A rebuild is running' },
  rebuild_failed: null,
  rebuild_differs: null,
  replay_interrupted: null,
  replay_running: { status: 409, title: 'A replay is running' },
  replay_not_found: { status: 404, title: 'Replay not found' },
  replay_failed: null,
  policy_differs: { status: 409, title: 'Another policy is configured' },
  checks_failed: null,
  usage: null,
  daemon_unreachable: null,
  daemon_failed: null,
  output_failed: null,
  input_failed: null,
  lines_refused: null,
  grant_not_found: { status: 404, title: 'Grant not found' },
  customer_erased: { status: 409, title: 'Customer erased' },
  idempotency_key_conflict: { status: 422, title: 'Idempotency key used before' },
  sync_off: { status: 409, title: 'Nothing is synchronised' },
  plan_changed: { status: 409, title: 'Plan changed' },
  group_not_found: { status: 404, title: 'Group not found' },
  not_entitled: { status: 409, title: 'Not entitled' },
  platform_not_configured: { status: 409, title: 'Platform not configured' },
  platform_unavailable: { status: 503, title: 'Platform unavailable', headers: RETRY_SOON },
  platform_refused: { status: 502, title: 'Platform refused' },
}

/** An RFC 9457 answer, ready to send. */
export interface Problem {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** False: a bug, of which the caller is told nothing. */
  readonly expected: boolean
}

/** What the caller is told about a failure: the code and the message of an expected one, no more. */
export function problemOf(error: unknown): Problem {
  const kind = isLatchkeyError(error) ? KIND_OF_CODE[error.code] : null
  if (!isLatchkeyError(error) || kind === null) {
    return problem(
      { status: 500, title: 'Internal error' },
      'internal_error',
      'The cause is in the log.',
      false,
    )
  }
  const hasIssues = error.code === 'invalid_request' || error.code === 'config_invalid'
  const issues = hasIssues ? { errors: error.issues } : {}
  const { code, message, retryAfterSeconds } = error
  const headers = retryAfterSeconds === null ? {} : { 'Retry-After': String(retryAfterSeconds) }
  return problem({ ...kind, headers: { ...kind.headers, ...headers } }, code, message, true, issues)
}

function problem(
  kind: ProblemKind,
  code: string,
  detail: string,
  expected: boolean,
  extension = {},
): Problem {
  const { status, title } = kind
  return {
    status,
    headers: { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store', ...kind.headers },
    body: JSON.stringify({ type: `urn:latchkey:problem:${code}`, title, status, detail, code, ...extension }),
    expected,
  }
}
