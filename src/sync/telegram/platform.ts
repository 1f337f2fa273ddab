import type { Chat, ChatMember } from 'grammy/types'
import { PLATFORMS } from '../../provider/accounts.js'
import { isUnbanOwed } from '../../store/join-links.js'
import {
  ActionRequiredError,
  accountInvalid,
  type CheckFinding,
  failedCheck,
  type Platform,
} from '../platform.js'
import { type TelegramTarget, targetKey } from '../target.js'
import { isRefusal, unlessRefused } from './calls.js'
import type { TelegramContext } from './context.js'
import { type Groups, isIn } from './groups.js'
import type { Receiver } from './receive.js'

/** Telegram allows a bot some thirty calls a second, and answers in about a tenth of a second. */
const CONCURRENCY = 3

/**
 * Groups of the messenger. A bot can't add members: `give` approves a request to join. `take` bans, which removes the
 * member, and lifts the ban at once, so that they may come back.
 */
export function createTelegramPlatform(
  context: TelegramContext,
  checkUpdates: Receiver['check'],
): Platform<TelegramTarget> {
  const { groups, db, writeSync } = context

  async function liftBan(groupId: string, userId: number): Promise<void> {
    await groups
      .within(groupId, (api, chatId) => api.unbanChatMember(chatId, userId, { only_if_banned: true }))
      .catch(unlessRefused('not_in_group', 'no_bans_here'))
    await writeSync('setUnbanOwed', { groupId, accountId: String(userId), isOwed: false })
  }

  async function approve(groupId: string, userId: number): Promise<void> {
    try {
      await groups.within(groupId, (api, chatId) => api.approveChatJoinRequest(chatId, userId))
    } catch (error) {
      if (isRefusal(error, 'in_group_already')) return
      if (!isRefusal(error, 'no_request', 'not_in_group', 'not_recognised')) throw error
      throw new ActionRequiredError('awaiting_join', NOT_ASKED, { mayHeal: true })
    }
  }

  async function ban(groupId: string, userId: number): Promise<void> {
    const owed = { groupId, accountId: String(userId) }
    // An earlier attempt may have left a ban, whatever the answer to this one.
    const wasOwed = await isUnbanOwed(db, owed)
    // Stored first: whatever happens after the ban, it must be lifted. The record tells our ban from one by staff.
    await writeSync('setUnbanOwed', { ...owed, isOwed: true })
    try {
      await groups.within(groupId, (api, chatId) => api.banChatMember(chatId, userId))
    } catch (error) {
      if (isRefusal(error, 'not_in_group')) return
      // Without proof the membership does not count as taken.
      if (isRefusal(error, 'not_recognised') && (await memberStatus(groups, groupId, userId)) === 'absent')
        return
      if (error instanceof ActionRequiredError && !wasOwed) {
        await writeSync('setUnbanOwed', { ...owed, isOwed: false })
      }
      throw error
    }
  }

  return {
    name: 'telegram',
    concurrency: CONCURRENCY,
    async observe({ groupId }, accountId) {
      const userId = userIdOf(accountId)
      const seen = await memberStatus(groups, groupId, userId)
      // Telegram does not recognise an account that the bot has never met, which can't be in a group by our approval.
      return seen === 'not_recognised' ? 'absent' : seen
    },
    async give({ groupId }, accountId) {
      const userId = userIdOf(accountId)
      const isBanOwn = await isUnbanOwed(db, { groupId, accountId })
      if (isBanOwn) await liftBan(groupId, userId)
      await approve(groupId, userId)
    },
    async take({ groupId }, accountId) {
      const userId = userIdOf(accountId)
      await ban(groupId, userId)
      await liftBan(groupId, userId)
    },
    check: createCheck(context, checkUpdates),
  }
}

async function memberStatus(groups: Groups, groupId: string, userId: number) {
  try {
    const member = await groups.within(groupId, (api, chatId) => api.getChatMember(chatId, userId))
    return isIn(member) ? 'member' : 'absent'
  } catch (error) {
    if (isRefusal(error, 'not_in_group')) return 'absent'
    if (isRefusal(error, 'not_recognised')) return 'not_recognised'
    throw error
  }
}

function userIdOf(accountId: string): number {
  const userId = Number(accountId)
  if (PLATFORMS.telegram.id.test(accountId) && Number.isSafeInteger(userId)) return userId
  throw accountInvalid('telegram', 'a number')
}

const NOT_ASKED =
  'The customer has not asked to join yet: send them an invite link (POST /customers/:id/invites).'

/** Checks that the bot is in each group, may admit and remove members, and receives updates from it. */
function createCheck({ call, groups }: TelegramContext, checkUpdates: Receiver['check']) {
  async function checkTarget(target: TelegramTarget, botId: number): Promise<CheckFinding> {
    const about = targetKey(target)
    const { groupId } = target
    try {
      const chat = await groups.within(groupId, (api, chatId) => api.getChat(chatId))
      const problem =
        problemWith(chat) ??
        problemOf(await groups.within(groupId, (api, chatId) => api.getChatMember(chatId, botId)))
      const fine = `The bot may let people into ${chat.title ?? about}, and remove them.`
      return { about, isFine: problem === null, message: problem ?? fine }
    } catch (error) {
      return failedCheck(about, error)
    }
  }

  return async (targets: readonly TelegramTarget[]): Promise<readonly CheckFinding[]> => {
    try {
      const bot = await call((api) => api.getMe())
      const findings: CheckFinding[] = [
        { about: 'telegram', isFine: true, message: `The bot is @${bot.username}.` },
      ]
      for (const target of targets) findings.push(await checkTarget(target, bot.id))
      return [...findings, checkUpdates()]
    } catch (error) {
      return [failedCheck('telegram', error)]
    }
  }
}

function problemWith({ type }: Pick<Chat, 'type'>): string | null {
  if (type === 'supergroup' || type === 'group') return null
  return `This is a ${type}, not a group: set a group's id as groupId.`
}

function problemOf(bot: ChatMember): string | null {
  if (bot.status !== 'administrator') return 'The bot is not an administrator of the group: make it one.'
  const missing = [
    ...(bot.can_invite_users ? [] : ['invite users']),
    ...(bot.can_restrict_members ? [] : ['ban users']),
  ]
  return missing.length === 0 ? null : `Allow the bot, as an administrator, to ${missing.join(' and to ')}.`
}
