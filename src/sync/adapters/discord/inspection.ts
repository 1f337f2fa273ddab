import { Routes } from 'discord-api-types/v10'
import type { ActionRequiredError } from '../../platform-errors.js'
import type { DiscordTarget } from '../../target.js'
import { explained } from './action-required.js'
import type { Calls } from './calls.js'
import { requireTargetIds } from './ids.js'
import { roleProblem } from './role-problem.js'
import { guildSchema, memberSchema, userSchema } from './shapes.js'

export interface Inspection {
  /** For people. */
  readonly guildName: string
  readonly roleName: string
  /** Null: the bot may give and take the role. */
  readonly problem: ActionRequiredError | null
}

export interface Inspections {
  /** Who the bot is. */
  bot(): Promise<{ readonly id: string; readonly username: string }>
  /**
   * Tells whether the bot `botId` may give and take a target's role, worked out from what Discord tells of both. Of
   * each guild it is asked once.
   */
  inspectAs(botId: string): (target: DiscordTarget) => Promise<Inspection>
}

export function createInspections(calls: Calls): Inspections {
  async function readGuild(target: DiscordTarget, botId: string) {
    const { guildId } = target
    const guild = await explained(target, calls.read(Routes.guild(guildId), guildSchema))
    const { roles } = await explained(target, calls.read(Routes.guildMember(guildId, botId), memberSchema))
    return { guild, bot: { id: botId, roleIds: roles } }
  }

  return {
    bot: () => calls.read(Routes.user('@me'), userSchema),
    inspectAs(botId) {
      const known = new Map<string, ReturnType<typeof readGuild>>()
      return async (target) => {
        requireTargetIds(target)
        const { guildId, roleId } = target
        const reading = known.get(guildId) ?? readGuild(target, botId)
        known.set(guildId, reading)
        const { guild, bot } = await reading
        return {
          guildName: guild.name,
          roleName: guild.roles.find(({ id }) => id === roleId)?.name ?? roleId,
          problem: roleProblem(guild, bot, target),
        }
      }
    },
  }
}
