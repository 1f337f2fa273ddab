import { Api, GrammyError } from 'grammy'
import type { BotDeps } from '../context.js'
import { HeldBackError } from '../outgoing.js'
import {
  ActionRequiredError,
  type FailureScope,
  isOutage,
  RetryableError,
  rateLimited,
  tokenRejected,
} from '../platform.js'

/** Telegram understood a call and refused it. */
export class Refusal extends ActionRequiredError {
  /** Telegram's own words, such as `Bad Request: chat not found`. */
  readonly description: string
  /** The new id of the group, if the call used its old one. */
  readonly movedTo: string | null

  /** @param remedy what to do about it, if known */
  constructor(description: string, movedTo: string | null, remedy?: Remedy, groupId = '') {
    const message = remedy?.message(groupId) ?? `Telegram refused: ${description}`
    super(remedy?.code ?? 'refused', message, remedy)
    this.description = description
    this.movedTo = movedTo
  }

  /** The same refusal, with what somebody has to do in this group. */
  in(groupId: string): Refusal {
    const remedy = REMEDIES.find(({ words }) => words.test(this.description))
    return new Refusal(this.description, this.movedTo, remedy, groupId)
  }
}

const WORDS = {
  not_in_group: /member not found|USER_NOT_PARTICIPANT/i,
  /**
   * Telegram says this of accounts that the bot has never met, and sometimes of members too: it does not prove that
   * the account is not in the group.
   */
  not_recognised: /user not found|PARTICIPANT_ID_INVALID|USER_ID_INVALID|invalid user_id/i,
  no_request: /HIDE_REQUESTER_MISSING/i,
  in_group_already: /USER_ALREADY_PARTICIPANT/i,
  /** A ban removes a member from a basic group but does not keep them out: there is nothing to lift. */
  no_bans_here: /method is available for supergroup and channel chats only/i,
} satisfies Record<string, RegExp>
type Meaning = keyof typeof WORDS

/** Whether Telegram refused for one of these reasons. The Bot API has no codes for them, only texts. */
export function isRefusal(error: unknown, ...meanings: readonly Meaning[]): boolean {
  return error instanceof Refusal && meanings.some((meaning) => WORDS[meaning].test(error.description))
}

/** Catches a refusal for one of these reasons. */
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

/** What to do about each known refusal. The first match counts: administrators before rights. */
const REMEDIES: readonly Remedy[] = [
  {
    words: /administrator of the chat|can't remove chat owner|USER_ADMIN_INVALID|kick group administrators/i,
    code: 'member_is_admin',
    scope: 'call',
    mayHeal: true,
    message: (group) =>
      `An administrator of the group ${group} can't be removed: remove their admin rights first.`,
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
    message: (group) =>
      `The bot can't find the group ${group}: check the groupId, and add the bot to the group.`,
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
      `Telegram does not recognise the account: if it is still in the group ${group}, remove it by hand.`,
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

/** The wait after a 429 that has no valid one. */
const DEFAULT_WAIT_SECONDS = 5
/** Telegram sometimes asks bots to wait for hours. A longer wait is cut to this, and then one call tests the limit. */
const LONGEST_WAIT_SECONDS = 86_400

/**
 * Translates a failed call into our own error: the library's may contain the URL, and with it the token.
 * @param now epoch milliseconds
 * @param withoutToken removes the token from a text
 */
export function failureOf(error: unknown, now: number, withoutToken: (text: string) => string) {
  // A proxy before Telegram may answer with JSON of its own, without Telegram's error code.
  if (!(error instanceof GrammyError) || error.error_code === undefined) {
    const message = 'Telegram could not be reached, or did not answer in time.'
    return new RetryableError('telegram_unreachable', message)
  }
  const { error_code: status, parameters } = error
  const description = withoutToken(error.description ?? '')
  if (status === 429) return limitedUntil(now + waitSeconds(parameters.retry_after) * 1_000)
  if (status === 409) return new RetryableError('telegram_conflict', `Telegram says: ${description}`)
  if (status >= 500) return new RetryableError('telegram_failed', `Telegram failed with status ${status}.`)
  // 404: the id is not a bot's. 401: its token was revoked.
  if (status === 401 || description === 'Not Found') return tokenRejected('telegram')
  return new Refusal(description, parameters.migrate_to_chat_id?.toString() ?? null)
}

function waitSeconds(seconds: unknown): number {
  if (typeof seconds !== 'number' || !(seconds >= 0)) return DEFAULT_WAIT_SECONDS
  return Math.min(Math.ceil(seconds), LONGEST_WAIT_SECONDS)
}

/** Telegram limits a bot as a whole and in each chat, and does not say which it was. */
function limitedUntil(notBefore: number): RetryableError {
  return rateLimited('telegram', { scope: 'platform', notBefore })
}

/** Far longer than Telegram normally needs, and short enough to notice an outage. */
const TIMEOUT_SECONDS = 15

export interface CallsDeps extends BotDeps {
  readonly timeoutSeconds?: number
}

/**
 * Makes one call, at most once. Fails at once during a wait that Telegram asked for.
 * @throws {RetryableError} {ActionRequiredError} a `Refusal` if it does not concern the whole bot; {HeldBackError}. None
 * holds the token.
 */
export type Call = <Answer>(
  run: (api: Api) => Promise<Answer>,
  options?: { readonly isLongPoll?: boolean },
) => Promise<Answer>

/** How long a long poll stays open; the call that makes it may take a little longer. */
export const LONG_POLL_SECONDS = 30

/** What any instance may ask for: it changes no membership, and takes no update from the one that polls. */
const OPEN_TO_ALL = ['getMe', 'getChat', 'getChatMember', 'createChatInviteLink']

/** All calls to Telegram share one instance, and with it the limit. */
export function createCalls(deps: CallsDeps): Call {
  const { botToken, apiUrl, clock, reach, outgoing, timeoutSeconds = TIMEOUT_SECONDS } = deps
  function apiWithin(seconds: number): Api {
    const api = new Api(botToken, {
      ...(apiUrl === null ? {} : { apiRoot: apiUrl.replace(/\/+$/, '') }),
      timeoutSeconds: seconds,
      // A redirect would send the token elsewhere.
      baseFetchConfig: { redirect: 'error' },
    })
    // The library makes the request in the same turn: it has no queue.
    api.config.use((send, method, payload, signal) =>
      OPEN_TO_ALL.includes(method)
        ? send(method, payload, signal)
        : outgoing.send((own) => send(method, payload, own as typeof signal), signal as AbortSignal),
    )
    return api
  }
  const api = apiWithin(timeoutSeconds)
  const longPollApi = apiWithin(LONG_POLL_SECONDS + timeoutSeconds)
  const withoutToken = (text: string) => text.replaceAll(botToken, '[token]')
  let notBefore = 0

  return async (run, { isLongPoll = false } = {}) => {
    if (clock() < notBefore) throw limitedUntil(notBefore)
    try {
      const answer = await run(isLongPoll ? longPollApi : api)
      reach?.answered()
      return answer
    } catch (error) {
      if (error instanceof HeldBackError) throw error
      const failure = failureOf(error, clock(), withoutToken)
      if (isOutage(failure)) reach?.failed(failure.message)
      else reach?.answered()
      if (failure instanceof RetryableError) notBefore = Math.max(notBefore, failure.notBefore ?? 0)
      throw failure
    }
  }
}
