/** Every failure that is expected: what went wrong, under a name that scripts may rely on. */
export const ERROR_CODES = [
  'signature_missing',
  'signature_invalid',
  'timestamp_invalid',
  'timestamp_out_of_tolerance',
  'endpoint_not_found',
  'route_not_found',
  'method_not_allowed',
  'body_too_large',
  'body_incomplete',
  'headers_too_large',
  'encoding_not_supported',
  'media_type_not_supported',
  'rate_limited',
  'not_stored',
  'store_unavailable',
  'unauthorized',
  'forbidden',
  'invalid_request',
  'customer_not_found',
  'event_not_found',
  'body_removed',
  'config_invalid',
  'config_missing',
  'store_in_use',
  'store_missing',
  'store_replaced',
  'writer_ended',
  'schema_too_new',
  'backup_exists',
  'backup_missing',
  'backup_damaged',
  'backup_failed',
  'not_a_backup',
  'cursor_reset',
  'rebuild_interrupted',
  'rebuild_running',
  'rebuild_failed',
  'rebuild_differs',
  'replay_interrupted',
  'replay_running',
  'replay_not_found',
  'replay_failed',
  'policy_differs',
  'checks_failed',
  'usage',
  'daemon_unreachable',
  'daemon_failed',
  'output_failed',
  'input_failed',
  'lines_refused',
  'grant_not_found',
  'customer_erased',
  'idempotency_key_conflict',
  'sync_off',
  'plan_changed',
  'group_not_found',
  'not_entitled',
  'platform_not_configured',
  'platform_unavailable',
  'platform_refused',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

/** One thing wrong with an input, and where: `{ path: 'endpoints.v3.secrets[0]', message: 'is empty' }`. */
export interface Issue {
  readonly path: string
  readonly message: string
}

/** `endpoints.v3.secrets[0]: is empty`. */
export function issueLine({ path, message }: Issue): string {
  return path === '' ? message : `${path}: ${message}`
}

/**
 * The one class of expected failure. Anything else that is thrown is a bug and is shown to nobody.
 * `message` is for people, and may be shown to a caller: it never holds a secret.
 */
export class LatchkeyError extends Error {
  readonly code: ErrorCode
  readonly issues: readonly Issue[]
  /** When to ask again; null: whenever. */
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

/** Whether `error` is an expected failure, of the given kind if one is named. */
export function isLatchkeyError(error: unknown, code?: ErrorCode): error is LatchkeyError {
  return error instanceof LatchkeyError && (code === undefined || error.code === code)
}

/** What SQLite says of a statement, and not of the file or its disk. */
const OF_THE_STATEMENT = /^SQLITE_(ERROR|CONSTRAINT|MISMATCH|MISUSE|RANGE)(_|$)/

/**
 * Whether the message and the code say all that there is to know: of an expected failure, and of what the system or
 * SQLite refused. Anything else is a bug, and its stack is needed.
 */
export function isExplained(error: unknown): boolean {
  if (isLatchkeyError(error)) return error.cause === undefined || isExplained(error.cause)
  if (!(error instanceof Error && 'code' in error)) return false
  return 'syscall' in error || (isSqliteCode(error.code) && !OF_THE_STATEMENT.test(error.code))
}

/** What to say of a failure in a line: of a bug its kind too. Its stack is for the log, and tells a user nothing. */
export function failureText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (isLatchkeyError(error)) return error.message
  if (!isExplained(error)) return String(error)
  return 'code' in error && isSqliteCode(error.code) ? `${error.message} (${error.code})` : error.message
}

function isSqliteCode(code: unknown): code is string {
  return typeof code === 'string' && code.startsWith('SQLITE_')
}
