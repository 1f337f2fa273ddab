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
  /** Whether the bot `botId` may give and take the target's role, worked out from what Discord tells of both. */
  inspect(target: DiscordTarget, botId: string): Promise<Inspection>
}

export function createInspections(calls: Calls): Inspections {
  return {
    bot: () => calls.read(Routes.user('@me'), userSchema),
    async inspect(target, botId) {
      requireTargetIds(target)
      const { guildId, roleId } = target
      const guild = await explained(target, calls.read(Routes.guild(guildId), guildSchema))
      const member = await explained(target, calls.read(Routes.guildMember(guildId, botId), memberSchema))
      return {
        guildName: guild.name,
        roleName: guild.roles.find(({ id }) => id === roleId)?.name ?? roleId,
        problem: roleProblem(guild, { id: botId, roleIds: member.roles }, target),
      }
    },
  }
}
