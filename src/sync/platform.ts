import { PLATFORM_NAMES, PLATFORMS } from '../provider/accounts.js'
import type { AdapterName, Target } from './target.js'

/** What the platform says about one account and one target. */
export type Observation = 'member' | 'absent'

/** The result of one check on the platform: in order, or what to do. */
export interface CheckFinding {
  /** A `targetKey`; or the adapter's name if it concerns all its targets, with a part of it after a colon. */
  readonly about: string
  readonly isFine: boolean
  /** The check learnt nothing: the platform limits calls, is down, or did not answer in time. */
  readonly isUnknown?: true
  /** For people: the state, or what to do about it. */
  readonly message: string
}

/**
 * One platform, as the reconciler uses it. An adapter makes each call at most once: the reconciler decides whether and
 * when to repeat it. All calls may reject with `RetryableError`, `ActionRequiredError` or what the store fails with, `give`
 * and `take` also with `HeldBackError`, and with nothing else; no error holds a token. `give` and `take` may be repeated
 * after an unknown outcome.
 */
export interface Platform<Of extends Target = Target> {
  readonly name: AdapterName
  /** How many calls may be in flight at once. */
  readonly concurrency: number
  observe(target: Of, accountId: string): Promise<Observation>
  /** Done already counts as done. */
  give(target: Of, accountId: string): Promise<void>
  /**
   * Done already counts as done. `gone`: the account is not there; if it comes back, it may still have the membership.
   */
  take(target: Of, accountId: string): Promise<'gone' | undefined>
  /**
   * Every account that has the membership now, also if Latchkey did not give it; left out if the platform can't list them. Rejects with the
   * code `members_not_listable` if the bot may not list them: each row is then checked on its own.
   */
  listMembers?(target: Of): AsyncIterable<string>
  /** Asks the platform whether everything that these targets need is there. */
  check(targets: readonly Of[]): Promise<readonly CheckFinding[]>
}

/** Which other calls a failed call blocks: none, all of this target, or all of the platform. */
export type FailureScope = 'call' | 'target' | 'platform'

interface RetryOptions {
  readonly scope?: FailureScope
  /** No call in the scope before this instant, in epoch milliseconds; null: the back-off decides. */
  readonly notBefore?: number | null
  /** The platform certainly did not do it: it said so, or was not called. */
  readonly isRefused?: boolean
}

/**
 * The same call may succeed later: the platform limits calls, is down, or did not answer in time. `message` is for
 * people and holds no token.
 */
export class RetryableError extends Error implements Required<RetryOptions> {
  readonly code: string
  readonly scope: FailureScope
  readonly notBefore: number | null
  readonly isRefused: boolean

  constructor(code: string, message: string, options: RetryOptions = {}) {
    const { scope = 'call', notBefore = null, isRefused = false } = options
    super(message)
    this.name = 'RetryableError'
    this.code = code
    this.scope = scope
    this.notBefore = notBefore
    this.isRefused = isRefused
  }
}

/** The platform gave no answer of its own, or failed: other calls would fail too until it is up again. */
const OUTAGE_CODES = PLATFORM_NAMES.flatMap((name) => [`${name}_unreachable`, `${name}_failed`])

export function isOutage(error: unknown): error is RetryableError {
  return error instanceof RetryableError && OUTAGE_CODES.includes(error.code)
}

/**
 * The same call fails until somebody acts: `message` says who must do what. With the scope `platform` no further call
 * is made until then; with `target`, none for this target.
 */
export class ActionRequiredError extends Error {
  readonly code: string
  readonly scope: FailureScope
  /** Whether the cause may go away without an operator, such as when the member joins: sweeps try again. */
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

/** The platform took no call of this bot. */
export function tokenRejected(name: AdapterName): ActionRequiredError {
  const message = `${PLATFORMS[name].title} does not accept the bot token: put a valid one in sync.${name}.botToken.`
  return new ActionRequiredError('token_rejected', message, { scope: 'platform' })
}

export function rateLimited(name: AdapterName, limit: RetryOptions): RetryableError {
  return new RetryableError('rate_limited', `${PLATFORMS[name].title} limits the rate of calls.`, limit)
}

/** @param form what an id looks like. The account is not repeated: an email may have been linked by mistake. */
export function accountInvalid(name: AdapterName, form: string): ActionRequiredError {
  const message = `The linked account is not a ${PLATFORMS[name].title} user id, which is ${form}: link the right one.`
  return new ActionRequiredError('account_invalid', message)
}

/** The finding for a check that the platform prevented. Bugs are not findings: they are thrown. */
export function failedCheck(about: string, error: unknown): CheckFinding {
  if (error instanceof RetryableError) {
    return { about, isFine: false, isUnknown: true, message: error.message }
  }
  if (error instanceof ActionRequiredError) return { about, isFine: false, message: error.message }
  throw error
}
