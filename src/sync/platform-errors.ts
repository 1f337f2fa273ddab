/** What a failed call tells about other calls: nothing, that this target's must wait, or that all of the platform's must. */
export type FailureScope = 'call' | 'target' | 'platform'

/**
 * The call may succeed later, as it is: the platform limits, is down, or did not answer in time.
 * `message` is for people and holds no token.
 */
export class RetryableError extends Error {
  readonly code: string
  readonly scope: FailureScope
  /** No call in the scope before this instant, in epoch milliseconds; null: whenever the back-off says. */
  readonly notBefore: number | null
  /** The platform has certainly not done it: it said so, or was not asked. */
  readonly isRefused: boolean

  constructor(
    code: string,
    message: string,
    {
      scope = 'call',
      notBefore = null,
      isRefused = false,
    }: { scope?: FailureScope; notBefore?: number | null; isRefused?: boolean } = {},
  ) {
    super(message)
    this.name = 'RetryableError'
    this.code = code
    this.scope = scope
    this.notBefore = notBefore
    this.isRefused = isRefused
  }
}

/** Of a platform that gave no answer of its own, or failed: any other call meets the same until it is up again. */
export const OUTAGE_CODES = [
  'discord_unreachable',
  'discord_failed',
  'telegram_unreachable',
  'telegram_failed',
] as const

export function isOutage(error: unknown): error is RetryableError {
  return error instanceof RetryableError && (OUTAGE_CODES as readonly string[]).includes(error.code)
}

/**
 * The same call will fail until somebody does something: `message` says who and what. With the scope `platform` no
 * further call is made before that; `target`: none for this target.
 */
export class ActionRequiredError extends Error {
  readonly code: string
  readonly scope: FailureScope
  /** Whether what is missing may come without an operator, such as the member joining: sweeps try again. */
  readonly mayHeal: boolean

  constructor(
    code: string,
    message: string,
    { scope = 'call', mayHeal = false }: { scope?: FailureScope; mayHeal?: boolean } = {},
  ) {
    super(message)
    this.name = 'ActionRequiredError'
    this.code = code
    this.scope = scope
    this.mayHeal = mayHeal
  }
}
