import type { Api } from 'grammy'
import type { Chat, ChatMember } from 'grammy/types'
import { failedCheck } from '../../failed-check.js'
import type { CheckFinding } from '../../platform.js'
import { type TelegramTarget, targetKey } from '../../target.js'
import type { Call } from './calls.js'
import { type CheckUpdates, UPDATES } from './check-updates.js'
import { explained, type Groups } from './groups.js'

export interface CheckDeps {
  readonly call: Call
  readonly groups: Groups
  readonly checkUpdates: CheckUpdates
}

/** Asks Telegram whether the bot is in each group, with the rights to let in and to remove, and tells it what happens. */
export function createCheck({ call, groups, checkUpdates }: CheckDeps) {
  async function checkTarget(target: TelegramTarget, botId: number): Promise<CheckFinding> {
    const about = targetKey(target)
    const ask = <Answer>(run: (api: Api, chatId: number) => Promise<Answer>) =>
      explained(target.groupId, groups.within(target.groupId, run))
    try {
      const chat = await ask((api, chatId) => api.getChat(chatId))
      const problem =
        problemWith(chat) ?? problemOf(await ask((api, chatId) => api.getChatMember(chatId, botId)))
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
      findings.push(await checkUpdates().catch((error: unknown) => failedCheck(UPDATES, error)))
      return findings
    } catch (error) {
      return [failedCheck('telegram', error)]
    }
  }
}

function problemWith({ type }: Pick<Chat, 'type'>): string | null {
  if (type === 'supergroup' || type === 'group') return null
  return `This is no group but a ${type}: set a group's id as groupId.`
}

function problemOf(bot: ChatMember): string | null {
  if (bot.status !== 'administrator') return 'The bot is no administrator of the group: make it one.'
  const missing = [
    ...(bot.can_invite_users ? [] : ['invite users']),
    ...(bot.can_restrict_members ? [] : ['ban users']),
  ]
  return missing.length === 0 ? null : `Allow the bot, as an administrator, to ${missing.join(' and to ')}.`
}
