import type { Logger } from 'pino'
import { type TelegramTarget, targetKey } from '../../target.js'
import { explained, type Groups } from './groups.js'
import { targetsOf } from './join-request.js'
import type { MemberChange } from './update.js'

export interface MemberChangeDeps {
  readonly groups: Groups
  readonly targets: () => readonly TelegramTarget[]
  /** Whether it is a link of Latchkey's own that has been used. */
  readonly isInviteUsed: (url: string) => Promise<boolean>
  readonly log: Logger
}

/** Somebody joined by an invite link of Latchkey's own: it has done its work, and is revoked. */
export function createHandleMemberChange({ groups, targets, isInviteUsed }: MemberChangeDeps) {
  return async ({ chat, new_chat_member: member, invite_link: link }: MemberChange): Promise<void> => {
    if (link === undefined || !isIn(member)) return
    const [joined] = await targetsOf(chat.id, groups, targets())
    if (joined === undefined || !(await isInviteUsed(link.invite_link))) return
    const { groupId } = joined
    const revoked = groups.within(groupId, (api, chatId) =>
      api.revokeChatInviteLink(chatId, link.invite_link),
    )
    await explained(groupId, revoked)
  }
}

/** The bot's own standing in a group has changed: it is told, since nothing works there without its rights. */
export function createHandleOwnChange({ groups, targets, log }: MemberChangeDeps) {
  return async ({ chat, new_chat_member: { status } }: MemberChange): Promise<void> => {
    for (const target of await targetsOf(chat.id, groups, targets())) {
      const about = { target: targetKey(target), status }
      if (status === 'administrator') log.info(about, 'the bot is an administrator of the Telegram group')
      else log.warn(about, 'the bot is no administrator of the Telegram group: make it one')
    }
  }
}

function isIn({ status, is_member: isMember }: MemberChange['new_chat_member']): boolean {
  return (
    ['creator', 'administrator', 'member'].includes(status) || (status === 'restricted' && isMember === true)
  )
}
