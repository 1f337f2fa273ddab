import { PermissionFlagsBits } from 'discord-api-types/v10'
import { ActionRequiredError } from '../../platform-errors.js'
import type { DiscordTarget } from '../../target.js'
import type { Guild, Role } from './shapes.js'

export interface Bot {
  readonly id: string
  /** Beside that of everyone. */
  readonly roleIds: readonly string[]
}

/** Why the bot can't give the target's role, and what to do about it; null: it can. */
export function roleProblem(guild: Guild, bot: Bot, { roleId }: DiscordTarget): ActionRequiredError | null {
  const role = guild.roles.find(({ id }) => id === roleId)
  const server = JSON.stringify(guild.name)
  if (role === undefined) {
    return problem('role_not_found', `The server ${server} has no role ${roleId}: correct the roleId.`)
  }
  const name = JSON.stringify(role.name)
  if (role.id === guild.id) {
    return problem('role_not_assignable', `Everybody in ${server} has the role ${name}: choose another.`)
  }
  if (role.managed) {
    return problem('role_not_assignable', `The role ${name} belongs to an integration: choose another.`)
  }
  // The owner needs no permission, and stands above every role.
  if (guild.owner_id === bot.id) return null
  const own = guild.roles.filter(({ id }) => id === guild.id || bot.roleIds.includes(id))
  if (!own.some(mayManageRoles)) {
    return problem('missing_permission', `Give the bot the permission Manage Roles in the server ${server}.`)
  }
  if (!own.some((one) => isAbove(one, role))) {
    return problem(
      'role_too_high',
      `Put the bot's own role above the role ${name} in the list of roles of ${server}.`,
    )
  }
  return null
}

function problem(code: string, message: string): ActionRequiredError {
  return new ActionRequiredError(code, message, { scope: 'target' })
}

function mayManageRoles({ permissions }: Role): boolean {
  return (permissions & (PermissionFlagsBits.Administrator | PermissionFlagsBits.ManageRoles)) !== 0n
}

/** Of roles with one position the older stands higher. */
function isAbove(one: Role, other: Role): boolean {
  if (one.position !== other.position) return one.position > other.position
  return BigInt(one.id) < BigInt(other.id)
}
