import type { Api } from 'grammy'
import { ActionRequiredError } from '../../platform-errors.js'
import { actionRequired } from './action-required.js'
import type { Call } from './calls.js'
import { Refusal } from './refusal.js'

const GROUP_ID = /^-\d{1,16}$/

/** Where groups went that got another id, by the id that the config has. Outlives a restart. */
export interface MovedGroups {
  load(): Promise<ReadonlyMap<string, string>>
  keep(moved: { readonly groupId: string; readonly movedTo: string }): Promise<void>
}

export interface Groups {
  /**
   * Makes a call about a group, under the id that it has now.
   * @throws what `Call` does; a refusal as it is
   */
  within<Answer>(groupId: string, run: (api: Api, chatId: number) => Promise<Answer>): Promise<Answer>
  /** The ids in the config, of those given, which stand for the chat that has this id now. */
  configuredAs(chatId: number, groupIds: readonly string[]): Promise<readonly string[]>
  /** Takes note that the group goes on under another id. */
  follow(chatId: number, movedTo: number, groupIds: readonly string[]): Promise<void>
}

/** Follows groups that become supergroups, and thereby get another id. */
export function createGroups(call: Call, moved: MovedGroups): Groups {
  async function configuredAs(chatId: number, groupIds: readonly string[]): Promise<readonly string[]> {
    const known = await moved.load()
    return groupIds.filter((groupId) => (known.get(groupId) ?? groupId) === String(chatId))
  }

  return {
    configuredAs,
    async within(groupId, run) {
      if (!GROUP_ID.test(groupId)) throw badGroupId(groupId)
      const known = (await moved.load()).get(groupId) ?? groupId
      try {
        return await call((api) => run(api, Number(known)))
      } catch (error) {
        if (!(error instanceof Refusal) || error.movedTo === null) throw error
        const { movedTo } = error
        await moved.keep({ groupId, movedTo })
        return await call((api) => run(api, Number(movedTo)))
      }
    },
    async follow(chatId, movedTo, groupIds) {
      for (const groupId of await configuredAs(chatId, groupIds)) {
        await moved.keep({ groupId, movedTo: String(movedTo) })
      }
    },
  }
}

/** The same, with every refusal told as what somebody has to do. */
export async function explained<Answer>(groupId: string, asked: Promise<Answer>): Promise<Answer> {
  try {
    return await asked
  } catch (error) {
    throw actionRequired(error, groupId)
  }
}

function badGroupId(groupId: string): ActionRequiredError {
  return new ActionRequiredError(
    'group_id_invalid',
    `${JSON.stringify(groupId)} is no group's id: groupId is a negative number, such as -1001234567890.`,
    { scope: 'target' },
  )
}
