import { ActionRequiredError } from '../../platform-errors.js'

/** Telegram understood a call and said no. What that means for the call, and what to do, is for its maker to tell. */
export class Refusal extends ActionRequiredError {
  /** Telegram's own words, such as `Bad Request: chat not found`. */
  readonly description: string
  /** The id that the group has now, where the call named the one it had before. */
  readonly movedTo: string | null

  constructor(description: string, movedTo: string | null) {
    super('refused', `Telegram refused: ${description}`)
    this.description = description
    this.movedTo = movedTo
  }
}

const NOT_IN_GROUP = /member not found|USER_NOT_PARTICIPANT/i
/**
 * Of whomever the bot has never met, and now and then of a member too: it does not prove that nobody by this id is in
 * the group.
 */
export const NOT_RECOGNISED = /user not found|PARTICIPANT_ID_INVALID|USER_ID_INVALID|invalid user_id/i
const NO_REQUEST = /HIDE_REQUESTER_MISSING/i
const IN_GROUP_ALREADY = /USER_ALREADY_PARTICIPANT/i
/** Banning removes from a basic group, and keeps nobody out of it: there is nothing to lift. */
const NO_BANS_HERE = /method is available for supergroup and channel chats only/i

type Meaning = 'not_in_group' | 'not_recognised' | 'no_request' | 'in_group_already' | 'no_bans_here'

const WORDS: Readonly<Record<Meaning, RegExp>> = {
  not_in_group: NOT_IN_GROUP,
  not_recognised: NOT_RECOGNISED,
  no_request: NO_REQUEST,
  in_group_already: IN_GROUP_ALREADY,
  no_bans_here: NO_BANS_HERE,
}

/** Whether the messenger refused for one of these reasons. The Bot API has no codes for them, only words. */
export function isRefusal(error: unknown, ...meanings: readonly Meaning[]): boolean {
  return error instanceof Refusal && meanings.some((meaning) => WORDS[meaning].test(error.description))
}
