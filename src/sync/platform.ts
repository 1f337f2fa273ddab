import { ADAPTER_NAMES, type AdapterName, type Target } from './target.js'

/** What the platform says of one account and one target. */
export type Observation = 'member' | 'absent'

/** What a check of the configuration found on the platform: in order, or what to do. */
export interface CheckFinding {
  /** `targetKey`, or for what concerns all targets of an adapter its name; a part of that follows after a colon. */
  readonly about: string
  readonly isFine: boolean
  /** Nothing was learnt: the platform limits, is down, or did not answer in time. */
  readonly isUnknown?: true
  /** For people: what stands, or what to do about it. */
  readonly message: string
}

/**
 * One community or messenger, as the reconciler drives it. Every call is made at most once here: whether and when it
 * is repeated the reconciler decides. All calls may reject with `RetryableError` or `ActionRequiredError`, and with
 * nothing else; no error holds a token. `give` and `take` may be repeated after an unknown outcome.
 */
export interface Platform<Of extends Target = Target> {
  readonly name: AdapterName
  /** How many calls may be under way at once. */
  readonly concurrency: number
  observe(target: Of, accountId: string): Promise<Observation>
  /** Done already counts as done. */
  give(target: Of, accountId: string): Promise<void>
  /** Done already counts as done. `gone`: the account is not there; should it come back, it may hold it still. */
  take(target: Of, accountId: string): Promise<'gone' | undefined>
  /**
   * Every account that holds the membership now, whoever gave it; null where the platform doesn't list them. Rejects
   * with the code `members_not_listable` where the bot may not: each row is then looked at by itself.
   */
  readonly listMembers: ((target: Of) => AsyncIterable<string>) | null
  /** Asks the platform whether all that these targets need is there. */
  check(targets: readonly Of[]): Promise<readonly CheckFinding[]>
}

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
const OUTAGE_CODES = ADAPTER_NAMES.flatMap((name) => [`${name}_unreachable`, `${name}_failed`])

export function isOutage(error: unknown): error is RetryableError {
  return error instanceof RetryableError && OUTAGE_CODES.includes(error.code)
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

/** What a check found that the platform did not let be made. A bug is none of a check's findings: it is thrown. */
export function failedCheck(about: string, error: unknown): CheckFinding {
  if (error instanceof RetryableError) {
    return { about, isFine: false, isUnknown: true, message: error.message }
  }
  if (error instanceof ActionRequiredError) return { about, isFine: false, message: error.message }
  throw error
}
