import { DiscordAPIError, RateLimitError } from '@discordjs/rest'
import { ActionRequiredError } from '../../platform-errors.js'
import type { Pauses } from './pauses.js'
import { Refusal } from './refusal.js'

const LONGEST_WORDS = 300

export interface FailureContext {
  readonly pauses: Pauses
  /** Of the call: `bucketOf`. */
  readonly bucket: string
  /** Epoch milliseconds. */
  readonly now: number
  /** Leaves the token out of a text. */
  readonly withoutToken: (text: string) => string
}

/** What a failed call means, made anew: the library's own errors hold the request. Any other error stays as it is. */
export function failureOf(error: unknown, { pauses, bucket, now, withoutToken }: FailureContext): unknown {
  if (error instanceof RateLimitError) {
    return pauses.limited(error.global ? null : bucket, now + Math.ceil(error.retryAfter))
  }
  if (!(error instanceof DiscordAPIError)) return error
  pauses.answered()
  if (error.status === 401) {
    return new ActionRequiredError(
      'token_rejected',
      'Discord does not accept the bot token: put a valid one in sync.discord.botToken.',
      { scope: 'platform' },
    )
  }
  return new Refusal(error.status, Number(error.code), plainWords(withoutToken(error.message)))
}

/** One short line: it goes to terminals and logs. */
function plainWords(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').slice(0, LONGEST_WORDS)
}
