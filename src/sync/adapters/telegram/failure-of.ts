import { GrammyError } from 'grammy'
import { ActionRequiredError, RetryableError } from '../../platform-errors.js'
import { Refusal } from './refusal.js'

/** Where no wait is told with a 429, or nothing that is one. */
const DEFAULT_WAIT_SECONDS = 5
/** Telegram does tell bots to wait for hours. Of a longer wait no more is taken at once: then one call asks again. */
const LONGEST_WAIT_SECONDS = 86_400

/**
 * What a failed call means, made anew: the library's own errors may hold the address, and with it the token.
 * @param now epoch milliseconds
 * @param withoutToken leaves the token out of a text
 */
export function failureOf(
  error: unknown,
  now: number,
  withoutToken: (text: string) => string,
): RetryableError | ActionRequiredError {
  // Whatever stands before Telegram may answer with JSON of its own, which has no such code.
  if (!(error instanceof GrammyError) || error.error_code === undefined) {
    return new RetryableError(
      'telegram_unreachable',
      'Telegram could not be reached, or did not answer in time.',
    )
  }
  const { error_code: status, parameters } = error
  const description = withoutToken(error.description ?? '')
  if (status === 429) {
    return rateLimited(now + waitSeconds(parameters.retry_after) * 1_000)
  }
  if (status === 409) return new RetryableError('telegram_conflict', `Telegram says: ${description}`)
  if (status >= 500) return new RetryableError('telegram_failed', `Telegram failed with status ${status}.`)
  // An id that is no bot's is not found; one whose token was revoked is not authorized.
  if (status === 401 || description === 'Not Found') {
    return new ActionRequiredError(
      'token_rejected',
      'Telegram does not accept the bot token: put a valid one in sync.telegram.botToken.',
      { scope: 'platform' },
    )
  }
  return new Refusal(description, parameters.migrate_to_chat_id?.toString() ?? null)
}

function waitSeconds(told: unknown): number {
  if (typeof told !== 'number' || !(told >= 0)) return DEFAULT_WAIT_SECONDS
  return Math.min(Math.ceil(told), LONGEST_WAIT_SECONDS)
}

/** Telegram limits a bot as a whole and in each chat, and does not tell which it was. */
export function rateLimited(notBefore: number): RetryableError {
  return new RetryableError('rate_limited', 'Telegram limits the rate of calls.', {
    scope: 'platform',
    notBefore,
  })
}
