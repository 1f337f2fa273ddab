import type { Api } from 'grammy'
import type { Kysely } from 'kysely'
import { loadMovedGroups } from '../../store/join-links.js'
import type { Database } from '../../store/schema.js'
import type { WriteSync } from '../../store/sync-writes.js'
import { ActionRequiredError } from '../platform.js'
import { type Call, Refusal } from './calls.js'

const GROUP_ID = /^-\d{1,16}$/

export type Groups = ReturnType<typeof createGroups>

/** Follows groups that become supergroups, and thereby get another id. */
export function createGroups(call: Call, db: Kysely<Database>, writeSync: WriteSync) {
  /** The ids in the config, of those given, of the chat that has this id now. */
  async function configuredAs(chatId: number, groupIds: readonly string[]): Promise<readonly string[]> {
    const known = await loadMovedGroups(db)
    return groupIds.filter((groupId) => (known.get(groupId) ?? groupId) === String(chatId))
  }

  return {
    configuredAs,
    /**
     * Makes a call about a group, under the id that it has now.
     * @throws what `Call` does; a refusal says what somebody has to do
     */
    async within<Answer>(
      groupId: string,
      run: (api: Api, chatId: number) => Promise<Answer>,
    ): Promise<Answer> {
      if (!GROUP_ID.test(groupId)) throw badGroupId(groupId)
      const known = (await loadMovedGroups(db)).get(groupId) ?? groupId
      const callAs = (id: string) =>
        call((api) => run(api, Number(id))).catch((error: unknown) => {
          throw error instanceof Refusal ? error.in(groupId) : error
        })
      try {
        return await callAs(known)
      } catch (error) {
        if (!(error instanceof Refusal) || error.movedTo === null) throw error
        const { movedTo } = error
        await writeSync('keepMovedGroup', { groupId, movedTo })
        return await callAs(movedTo)
      }
    },
    /** Takes note that the group goes on under another id. */
    async follow(chatId: number, movedTo: number, groupIds: readonly string[]): Promise<void> {
      for (const groupId of await configuredAs(chatId, groupIds)) {
        await writeSync('keepMovedGroup', { groupId, movedTo: String(movedTo) })
      }
    },
  }
}

function badGroupId(groupId: string): ActionRequiredError {
  return new ActionRequiredError(
    'group_id_invalid',
    `${JSON.stringify(groupId)} is no group's id: groupId is a negative number, such as -1001234567890.`,
    { scope: 'target' },
  )
}

/** What administrators of the group see beside the link. It names nobody: it stays there when a person is erased. */
const LINK_NAME = 'Latchkey'

/** Makes a link by which one asks to join, until then. Telegram can't limit how often such a link is used. */
export async function createInviteLink(groups: Groups, groupId: string, expiresAt: number): Promise<string> {
  const link = await groups.within(groupId, (api, chatId) =>
    api.createChatInviteLink(chatId, {
      name: LINK_NAME,
      creates_join_request: true,
      expire_date: Math.floor(expiresAt / 1_000),
    }),
  )
  return link.invite_link
}
