import { type ErrorCode, type Issue, LatchkeyError } from '../errors.js'

interface Kind {
  readonly code: ErrorCode
  /** Whether the same call may succeed in a while. */
  readonly isRetryable: boolean
}

const unavailable: Kind = { code: 'payments_api_unavailable', isRetryable: true }
const refused: Kind = { code: 'payments_api_refused', isRetryable: false }
const unreadable: Kind = { code: 'payments_api_unreadable', isRetryable: false }

/** Every way in which a call can fail. */
const KINDS = {
  unreachable: unavailable,
  timed_out: unavailable,
  rate_limited: unavailable,
  server_error: unavailable,
  /** Another request with the same idempotency key is still being worked on. */
  in_flight: unavailable,
  /** The key belongs to another environment; nothing was sent. */
  key_mismatch: refused,
  key_refused: refused,
  not_found: refused,
  /** The list has to be read from its beginning. */
  cursor_refused: refused,
  refused,
  /** The answer points elsewhere, and the key goes nowhere else. */
  redirected: unreadable,
  answer_too_large: unreadable,
  /** No envelope, or data that is not what was asked for. */
  answer_invalid: unreadable,
} as const satisfies Readonly<Record<string, Kind>>

export type FailureKind = keyof typeof KINDS

export interface FailureDetails {
  /** The status of the answer; null: there was none. */
  readonly status?: number | null
  /** The code in the answer's envelope, such as `SUBSCRIPTION_NOT_FOUND`. */
  readonly serviceCode?: string | null
  readonly retryAfterSeconds?: number | null
  /** Fields that the service refused. */
  readonly issues?: readonly Issue[]
}

/**
 * A call to the payments API that failed. It has no `cause`: errors of the network may hold what was sent, and that
 * includes the API key.
 */
export class PaymentsApiError extends LatchkeyError {
  readonly kind: FailureKind
  readonly isRetryable: boolean
  readonly status: number | null
  readonly serviceCode: string | null

  constructor(kind: FailureKind, message: string, details: FailureDetails = {}) {
    const { status = null, serviceCode = null, retryAfterSeconds = null, issues = [] } = details
    super(KINDS[kind].code, message, { issues, ...(retryAfterSeconds !== null && { retryAfterSeconds }) })
    this.name = 'PaymentsApiError'
    this.kind = kind
    this.isRetryable = KINDS[kind].isRetryable
    this.status = status
    this.serviceCode = serviceCode
  }
}

/** Whether `error` is a failed call, of the given kind if one is named. */
export function isPaymentsApiError(error: unknown, kind?: FailureKind): error is PaymentsApiError {
  return error instanceof PaymentsApiError && (kind === undefined || error.kind === kind)
}
