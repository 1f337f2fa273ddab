import type { Api } from 'grammy'
import { loadMovedGroups } from '../../store/join-links.js'
import type { Tools } from '../context.js'
import type { SyncedProduct, TelegramTarget } from '../target.js'
import { type Call, Refusal } from './calls.js'

export type Groups = ReturnType<typeof createGroups>

/**
 * Follows groups whose id changes because they become supergroups.
 * @param products called each time, since a reload may change them
 */
export function createGroups(call: Call, { db, writeSync }: Tools, products: () => readonly SyncedProduct[]) {
  /** The targets in this chat: at most one per environment. */
  async function targetsOf(chatId: number): Promise<readonly TelegramTarget[]> {
    const known = await loadMovedGroups(db)
    const targets = products().flatMap((one) => one.targets.filter(({ adapter }) => adapter === 'telegram'))
    return (targets as readonly TelegramTarget[]).filter(
      ({ groupId }) => (known.get(groupId) ?? groupId) === String(chatId),
    )
  }

  return {
    targetsOf,
    /**
     * Makes a call about a group, under its current id.
     * @throws as `Call` does; a refusal says what somebody has to do
     */
    async within<Answer>(
      groupId: string,
      run: (api: Api, chatId: number) => Promise<Answer>,
    ): Promise<Answer> {
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
    /** Stores the new id of the group. */
    async follow(chatId: number, movedTo: number): Promise<void> {
      for (const { groupId } of await targetsOf(chatId)) {
        await writeSync('keepMovedGroup', { groupId, movedTo: String(movedTo) })
      }
    },
  }
}

/** Whether a member with this status is in the group. */
export function isIn({
  status,
  ...more
}: {
  readonly status: string
  readonly is_member?: boolean | undefined
}): boolean {
  const isMember = ['creator', 'administrator', 'member'].includes(status)
  return isMember || (status === 'restricted' && more.is_member === true)
}
