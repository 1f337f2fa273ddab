import { Api, GrammyError } from 'grammy'
import type { Reach } from '../outages.js'
import { ActionRequiredError, type FailureScope, isOutage, RetryableError } from '../platform.js'

/** Telegram understood a call and said no. */
export class Refusal extends ActionRequiredError {
  /** Telegram's own words, such as `Bad Request: chat not found`. */
  readonly description: string
  /** The id that the group has now, where the call named the one it had before. */
  readonly movedTo: string | null

  /** @param remedy what to do about it, where that is known */
  constructor(description: string, movedTo: string | null, remedy?: Remedy, groupId = '') {
    const message = remedy?.message(groupId) ?? `Telegram refused: ${description}`
    super(remedy?.code ?? 'refused', message, remedy)
    this.description = description
    this.movedTo = movedTo
  }

  /** The same, with what somebody has to do in this group. */
  in(groupId: string): Refusal {
    const remedy = REMEDIES.find(({ words }) => words.test(this.description))
    return new Refusal(this.description, this.movedTo, remedy, groupId)
  }
}

const WORDS = {
  not_in_group: /member not found|USER_NOT_PARTICIPANT/i,
  /**
   * Of whomever the bot has never met, and now and then of a member too: it does not prove that nobody by this id is in
   * the group.
   */
  not_recognised: /user not found|PARTICIPANT_ID_INVALID|USER_ID_INVALID|invalid user_id/i,
  no_request: /HIDE_REQUESTER_MISSING/i,
  in_group_already: /USER_ALREADY_PARTICIPANT/i,
  /** Banning removes from a basic group, and keeps nobody out of it: there is nothing to lift. */
  no_bans_here: /method is available for supergroup and channel chats only/i,
} satisfies Record<string, RegExp>
type Meaning = keyof typeof WORDS

/** Whether the messenger refused for one of these reasons. The Bot API has no codes for them, only words. */
export function isRefusal(error: unknown, ...meanings: readonly Meaning[]): boolean {
  return error instanceof Refusal && meanings.some((meaning) => WORDS[meaning].test(error.description))
}

/** Catches what the messenger refused for one of these reasons. */
export function unlessRefused(...meanings: readonly Meaning[]): (error: unknown) => void {
  return (error) => {
    if (!isRefusal(error, ...meanings)) throw error
  }
}

interface Remedy {
  readonly words: RegExp
  readonly code: string
  readonly scope: FailureScope
  readonly mayHeal?: true
  readonly message: (groupId: string) => string
}

/** What to do about each refusal that is known. The first that matches counts: administrators before rights. */
const REMEDIES: readonly Remedy[] = [
  {
    words: /administrator of the chat|can't remove chat owner|USER_ADMIN_INVALID|kick group administrators/i,
    code: 'member_is_admin',
    scope: 'call',
    mayHeal: true,
    message: (group) => `An administrator of the group ${group} can't be removed: take their rights first.`,
  },
  {
    words:
      /bot was kicked|bot is not a member|not in the chat|CHANNEL_PRIVATE|group chat was de(leted|activated)|group is deactivated/i,
    code: 'bot_not_in_group',
    scope: 'target',
    message: (group) => `The bot is not in the group ${group}: add it, as an administrator.`,
  },
  {
    words: /chat not found|PEER_ID_INVALID|CHAT_ID_INVALID/i,
    code: 'group_not_found',
    scope: 'target',
    message: (group) => `The bot knows no group ${group}: see that the groupId is right, and the bot in it.`,
  },
  {
    words:
      /CHAT_ADMIN_REQUIRED|not enough rights|have no rights|need administrator rights|inviter of a user/i,
    code: 'missing_permission',
    scope: 'target',
    message: (group) =>
      `The bot lacks a right in the group ${group}: make it an administrator who may invite and ban users.`,
  },
  {
    words: WORDS.not_recognised,
    code: 'account_not_recognised',
    scope: 'call',
    mayHeal: true,
    message: (group) =>
      `Telegram does not recognise the account: where it is in the group ${group} still, remove it by hand.`,
  },
  {
    words: /upgraded to a supergroup/i,
    code: 'group_moved',
    scope: 'target',
    message: (group) => `The group ${group} became a supergroup with another id: set that as its groupId.`,
  },
  {
    words: /CHANNELS_TOO_MUCH/i,
    code: 'too_many_groups',
    scope: 'call',
    mayHeal: true,
    message: () => 'The customer is in as many groups as Telegram allows: they have to leave one.',
  },
]

/** Where no wait is told with a 429, or nothing that is one. */
const DEFAULT_WAIT_SECONDS = 5
/** Telegram does tell bots to wait for hours. Of a longer wait no more is taken at once: then one call asks again. */
const LONGEST_WAIT_SECONDS = 86_400

/**
 * What a failed call means, as an error of its own: the library's may hold the address, and with it the token.
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
function rateLimited(notBefore: number): RetryableError {
  return new RetryableError('rate_limited', 'Telegram limits the rate of calls.', {
    scope: 'platform',
    notBefore,
  })
}

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
      // A redirect would send the token elsewhere.
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
