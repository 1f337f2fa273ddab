import { BotApiError, badRequest } from './telegram-errors.js'
import { BOT_ID, BOT_USERNAME, type LocalGroup } from './telegram-group.js'
import type { UpdatesQueue } from './telegram-updates.js'

type Payload = Readonly<Record<string, unknown>>

export interface SentMessage {
  readonly chatId: number
  readonly text: string
}

export interface MethodsDeps {
  readonly groups: ReadonlyMap<number, LocalGroup>
  readonly updates: UpdatesQueue
  readonly sent: (message: SentMessage) => void
}

/** The methods of the Bot API that this server knows, by name. */
export function createMethods({ groups, updates, sent }: MethodsDeps) {
  /** By the id that it has now; by the one it had, the answer is where it went. */
  function groupOf({ chat_id: chatId }: Payload): LocalGroup {
    const group = groups.get(Number(chatId))
    if (group === undefined) throw badRequest('chat not found')
    if (group.id === Number(chatId)) return group
    throw badRequest('group chat was upgraded to a supergroup chat', { migrate_to_chat_id: group.id })
  }
  const userOf = ({ user_id: userId }: Payload): number => Number(userId)

  const methods: Readonly<Record<string, (payload: Payload) => unknown>> = {
    getMe: () => ({ id: BOT_ID, is_bot: true, first_name: 'Latchkey', username: BOT_USERNAME }),
    getChat: (asked) => {
      const { id, type, title, asBot } = groupOf(asked)
      asBot.status(BOT_ID)
      return { id, type, title, accent_color_id: 0, max_reaction_count: 0 }
    },
    getChatMember: (asked) => groupOf(asked).asBot.status(userOf(asked)),
    approveChatJoinRequest: (asked) => groupOf(asked).asBot.approve(userOf(asked)),
    declineChatJoinRequest: (asked) => groupOf(asked).asBot.decline(userOf(asked)),
    banChatMember: (asked) => groupOf(asked).asBot.ban(userOf(asked)),
    unbanChatMember: (asked) => groupOf(asked).asBot.unban(userOf(asked), asked.only_if_banned === true),
    createChatInviteLink(asked) {
      const { name, creates_join_request: createsJoinRequest, expire_date: expireDate } = asked
      if (createsJoinRequest === true && asked.member_limit !== undefined) {
        throw badRequest('member_limit cannot be used together with creates_join_request')
      }
      return groupOf(asked).asBot.createLink({
        name: name as string | undefined,
        creates_join_request: createsJoinRequest === true,
        expire_date: expireDate as number | undefined,
      })
    },
    revokeChatInviteLink: (asked) => groupOf(asked).asBot.revokeLink(String(asked.invite_link)),
    sendMessage({ chat_id: chatId, text }) {
      sent({ chatId: Number(chatId), text: String(text) })
      return { message_id: 1, date: 0, chat: { id: Number(chatId), type: 'private' }, text }
    },
    deleteWebhook() {
      updates.deleteWebhook()
      return true
    },
    getUpdates: ({ offset = 0, limit = 100, timeout = 0, allowed_updates: allowed }) =>
      updates.poll({
        offset: Number(offset),
        limit: Number(limit),
        timeoutSeconds: Number(timeout),
        allowed: allowed as readonly string[] | undefined,
      }),
  }

  return async (method: string, payload: Payload): Promise<unknown> => {
    const perform = methods[method]
    if (perform === undefined) throw new BotApiError(404, 'Not Found')
    return perform(payload)
  }
}
