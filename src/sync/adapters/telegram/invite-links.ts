import { explained, type Groups } from './groups.js'

/** What administrators of the group see beside the link. It names nobody: it stays there when a person is erased. */
const LINK_NAME = 'Latchkey'

/** Makes a link by which one asks to join, until then. Telegram can't limit how often such a link is used. */
export function createInviteLink(groups: Groups) {
  return async (groupId: string, expiresAt: number): Promise<string> => {
    const link = groups.within(groupId, (api, chatId) =>
      api.createChatInviteLink(chatId, {
        name: LINK_NAME,
        creates_join_request: true,
        expire_date: Math.floor(expiresAt / 1_000),
      }),
    )
    return (await explained(groupId, link)).invite_link
  }
}
