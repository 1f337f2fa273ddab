/**
 * Every expected failure: a stable code that scripts may rely on, with its status and title as an HTTP answer. Null:
 * it never becomes an answer; if it does, that is a bug.
 */
export const ERRORS = {
  signature_missing: [401, 'Signature missing'],
  signature_invalid: [401, 'Signature invalid'],
  timestamp_invalid: [401, 'Timestamp invalid'],
  timestamp_out_of_tolerance: [401, 'Timestamp out of tolerance'],
  endpoint_not_found: [404, 'Endpoint not found'],
  route_not_found: [404, 'Route not found'],
  method_not_allowed: [405, 'Method not allowed'],
  body_too_large: [413, 'Body too large'],
  body_incomplete: [408, 'Request incomplete'],
  headers_too_large: [431, 'Headers too large'],
  encoding_not_supported: [415, 'Content encoding not supported'],
  media_type_not_supported: [415, 'Media type not supported'],
  rate_limited: [429, 'Too many requests'],
  too_many_wrong_keys: [429, 'Too many wrong keys'],
  too_many_streams: [503, 'Too many streams'],
  not_stored: [503, 'Not stored'],
  store_unavailable: [503, 'Store unavailable'],
  unauthorized: [401, 'Unauthorized'],
  key_expired: [401, 'API key expired'],
  session_ended: [401, 'Session ended'],
  origin_refused: [403, 'Origin refused'],
  forbidden: [403, 'Forbidden'],
  invalid_request: [400, 'Invalid request'],
  customer_not_found: [404, 'Customer not found'],
  event_not_found: [404, 'Event not found'],
  body_removed: [410, 'Body removed'],
  body_already_read: [500, 'Body already read'],
  config_invalid: null,
  config_missing: null,
  store_in_use: null,
  store_missing: null,
  store_not_empty: null,
  store_replaced: null,
  writer_ended: null,
  schema_too_new: null,
  schema_too_old: null,
  backup_exists: null,
  backup_missing: null,
  backup_damaged: null,
  backup_failed: null,
  not_a_backup: null,
  cursor_reset: [410, 'Cursor reset'],
  rebuild_interrupted: null,
  rebuild_running: [409, 'A rebuild is running'],
  rebuild_failed: null,
  rebuild_differs: null,
  replay_interrupted: null,
  replay_running: [409, 'A replay is running'],
  replay_not_found: [404, 'Replay not found'],
  replay_failed: null,
  policy_differs: [409, 'Another policy is configured'],
  checks_failed: null,
  usage: null,
  daemon_unreachable: null,
  daemon_failed: null,
  output_failed: null,
  input_failed: null,
  lines_refused: null,
  grant_not_found: [404, 'Grant not found'],
  block_not_found: [404, 'Block not found'],
  customer_erased: [409, 'Customer erased'],
  idempotency_key_conflict: [422, 'Idempotency key used before'],
  plan_changed: [409, 'Plan changed'],
  group_not_found: [404, 'Group not found'],
  not_entitled: [409, 'Not entitled'],
  platform_not_configured: [409, 'Platform not configured'],
  webhook_not_found: [404, 'Webhook not found'],
  platform_unavailable: [503, 'Platform unavailable'],
  platform_refused: [502, 'Platform refused'],
  backfill_running: [409, 'A backfill is running'],
  backfill_not_found: [404, 'Backfill not found'],
  backfill_failed: null,
  payments_api_not_configured: [409, 'Payments API not configured'],
  payments_api_unavailable: [503, 'Payments API unavailable'],
  payments_api_refused: [502, 'Payments API refused'],
  payments_api_unreadable: [502, 'Payments API unreadable'],
} as const satisfies Readonly<Record<string, readonly [status: number, title: string] | null>>

export type ErrorCode = keyof typeof ERRORS
export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[]

/** One problem with an input, and its place: `{ path: 'endpoints.v3.secrets[0]', message: 'is empty' }`. */
export interface Issue {
  readonly path: string
  readonly message: string
}

/** `endpoints.v3.secrets[0]: is empty`. */
export function issueLine({ path, message }: Issue): string {
  return path === '' ? message : `${path}: ${message}`
}

/**
 * The one class of expected failure. Any other error is a bug, and its details are shown to nobody.
 * `message` is for people, and may be shown to a caller: it never holds a secret.
 */
export class LatchkeyError extends Error {
  readonly code: ErrorCode
  readonly issues: readonly Issue[]
  /** When to retry; null: at any time. */
  readonly retryAfterSeconds: number | null

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; issues?: readonly Issue[]; retryAfterSeconds?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'LatchkeyError'
    this.code = code
    this.issues = options.issues ?? []
    this.retryAfterSeconds = options.retryAfterSeconds ?? null
  }
}

/** Whether `error` is an expected failure, of the given code if one is named. */
export function isLatchkeyError(error: unknown, code?: ErrorCode): error is LatchkeyError {
  return error instanceof LatchkeyError && (code === undefined || error.code === code)
}

/** SQLite errors about a statement, not about the file or its disk. */
const OF_THE_STATEMENT = /^SQLITE_(ERROR|CONSTRAINT|MISMATCH|MISUSE|RANGE)(_|$)/

/**
 * Whether the message and the code say everything: for expected failures, and for refusals by the system or SQLite.
 * Any other error is a bug, and its stack is needed.
 */
export function isExplained(error: unknown): boolean {
  if (isLatchkeyError(error)) return error.cause === undefined || isExplained(error.cause)
  if (!(error instanceof Error && 'code' in error)) return false
  if ('syscall' in error || error.code === 'POSTGRES_UNREACHABLE') return true
  return isSqliteCode(error.code) && !OF_THE_STATEMENT.test(error.code)
}

/** A failure in one line, with its kind if it is a bug. Its stack is for the log, not for users. */
export function failureText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (isLatchkeyError(error)) return error.message
  if (!isExplained(error)) return String(error)
  return 'code' in error && isSqliteCode(error.code) ? `${error.message} (${error.code})` : error.message
}

function isSqliteCode(code: unknown): code is string {
  return typeof code === 'string' && code.startsWith('SQLITE_')
}
