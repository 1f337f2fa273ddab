import { ActionRequiredError, type FailureScope } from '../../platform-errors.js'
import { NOT_RECOGNISED, Refusal } from './refusal.js'

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
    words: NOT_RECOGNISED,
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

/** Turns a refusal that is known into what somebody has to do; any other error stays as it is. */
export function actionRequired(error: unknown, groupId: string): unknown {
  if (!(error instanceof Refusal)) return error
  const remedy = REMEDIES.find(({ words }) => words.test(error.description))
  if (remedy === undefined) return error
  const { code, scope, mayHeal = false, message } = remedy
  return new ActionRequiredError(code, message(groupId), { scope, mayHeal })
}
