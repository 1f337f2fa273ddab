import { Api } from 'grammy'
import type { Reach } from '../../outages.js'
import { isOutage, RetryableError } from '../../platform-errors.js'
import { failureOf, rateLimited } from './failure-of.js'

/** Far above what Telegram takes to answer, and short enough to find out that it doesn't. */
const TIMEOUT_SECONDS = 15

export interface CallsDeps {
  readonly botToken: string
  /** Null: Telegram's own. */
  readonly apiUrl: string | null
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly reach?: Reach
  readonly timeoutSeconds?: number
}

/**
 * Makes one call, at most once. Within a wait that Telegram asked for none is made: it fails at once.
 * @throws {RetryableError} {ActionRequiredError} a `Refusal`, where it does not concern the bot as a whole. None holds
 * the token.
 */
export type Call = <Answer>(
  run: (api: Api) => Promise<Answer>,
  options?: { readonly isLongPoll?: boolean },
) => Promise<Answer>

/** How long a long poll may be held open, and then the call that holds it. */
export const LONG_POLL_SECONDS = 30

/** All calls to Telegram go through one of these, so that they share its limit. */
export function createCalls({
  botToken,
  apiUrl,
  clock,
  reach,
  timeoutSeconds = TIMEOUT_SECONDS,
}: CallsDeps): Call {
  const apiWithin = (seconds: number) =>
    new Api(botToken, {
      ...(apiUrl === null ? {} : { apiRoot: apiUrl.replace(/\/+$/, '') }),
      timeoutSeconds: seconds,
      // Whoever redirects a call would be sent the token.
      baseFetchConfig: { redirect: 'error' },
    })
  const api = apiWithin(timeoutSeconds)
  const longPollApi = apiWithin(LONG_POLL_SECONDS + timeoutSeconds)
  const withoutToken = (text: string) => text.replaceAll(botToken, '[token]')
  let notBefore = 0

  return async (run, { isLongPoll = false } = {}) => {
    if (clock() < notBefore) throw rateLimited(notBefore)
    try {
      const answer = await run(isLongPoll ? longPollApi : api)
      reach?.answered()
      return answer
    } catch (error) {
      const failure = failureOf(error, clock(), withoutToken)
      if (isOutage(failure)) reach?.failed(failure.message)
      else reach?.answered()
      if (failure instanceof RetryableError) notBefore = Math.max(notBefore, failure.notBefore ?? 0)
      throw failure
    }
  }
}
