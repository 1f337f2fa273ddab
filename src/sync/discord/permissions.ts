import { PermissionFlagsBits, RESTJSONErrorCodes, Routes } from 'discord-api-types/v10'
import { z } from 'zod'
import { ActionRequiredError, accountInvalid, type CheckFinding, failedCheck } from '../platform.js'
import { type DiscordTarget, targetKey } from '../target.js'
import { type Calls, Refusal } from './calls.js'

/** Discord ids are 64-bit numbers that begin with a timestamp; the earliest have 17 digits. */
const DISCORD_ID = /^\d{17,20}$/

/**
 * Refuses an invalid id before any call: it becomes part of a URL path. The config has checked the target's ids.
 * @throws {ActionRequiredError} `account_invalid`
 */
export function requireAccount(accountId: string): void {
  if (!DISCORD_ID.test(accountId)) throw accountInvalid('discord', 'a number of 17 to 20 digits')
}

const idSchema = z.string().regex(DISCORD_ID)

export const userSchema = z.object({ id: idSchema, username: z.string() })

export const memberSchema = z.object({ roles: z.array(z.string()) })

export const memberPageSchema = z.array(memberSchema.extend({ user: z.object({ id: idSchema }) }))

const roleSchema = z.object({
  id: idSchema,
  name: z.string(),
  position: z.int(),
  /** A bit field of up to 64 bits. */
  permissions: z.string().regex(/^\d+$/).transform(BigInt),
  /** True for roles that only an integration or Discord itself can give. */
  managed: z.boolean(),
})
export type Role = z.infer<typeof roleSchema>

export const guildSchema = z.object({
  id: idSchema,
  name: z.string(),
  owner_id: idSchema,
  roles: z.array(roleSchema),
})
export type Guild = z.infer<typeof guildSchema>

/** Translates a refusal into what somebody has to do; other errors pass unchanged. */
export function actionRequired(error: unknown, { guildId, roleId }: DiscordTarget): unknown {
  if (!(error instanceof Refusal)) return error
  switch (error.code) {
    case RESTJSONErrorCodes.UnknownMember:
      return new ActionRequiredError(
        'member_not_in_guild',
        `The linked account is not in the server ${guildId}: it gets the role once it joins.`,
        { mayHeal: true },
      )
    case RESTJSONErrorCodes.UnknownUser:
      return new ActionRequiredError(
        'account_not_found',
        'Discord has no account with the linked id: link the right one.',
      )
    case RESTJSONErrorCodes.UnknownGuild:
      return problem(
        'guild_not_found',
        `The bot can't find the server ${guildId}: check the guildId, and invite the bot.`,
      )
    case RESTJSONErrorCodes.UnknownRole:
      return problem('role_not_found', `The server ${guildId} has no role ${roleId}: correct the roleId.`)
    case RESTJSONErrorCodes.MissingAccess:
      return problem(
        'missing_access',
        `The bot has no access to the server ${guildId}: invite it, with the permission Manage Roles.`,
      )
    case RESTJSONErrorCodes.MissingPermissions:
      return problem(
        'missing_permission',
        `The bot may not give the role ${roleId} in the server ${guildId}: give the bot the permission Manage ` +
          'Roles, and put its own role above that one in the list of roles.',
      )
    default:
      // Discord blocks bots that are forbidden too often. An unknown 403 may concern all calls of the target, so one of
      // them is enough to find out.
      return new ActionRequiredError('refused', `Discord refused: ${error.message} (${error.code})`, {
        scope: error.status === 403 ? 'target' : 'call',
      })
  }
}

/** @throws {ActionRequiredError} in place of a `Refusal` */
export async function explained<Answer>(target: DiscordTarget, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    throw actionRequired(error, target)
  }
}

export interface Bot {
  readonly id: string
  /** The roles besides @everyone. */
  readonly roleIds: readonly string[]
}

/** Why the bot can't give the target's role, and what to do; null: it can. */
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
  // The owner needs no permission, and is above every role.
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

/** Of two roles with the same position, the older one is higher. */
function isAbove(one: Role, other: Role): boolean {
  if (one.position !== other.position) return one.position > other.position
  return BigInt(one.id) < BigInt(other.id)
}

export function readBot(calls: Calls): Promise<z.infer<typeof userSchema>> {
  return calls.read(Routes.user('@me'), userSchema)
}

/**
 * Finds out whether the bot `botId` may give and take a target's role. `problem` null: it may. Asks Discord once per
 * guild.
 */
export function inspectionAs(calls: Calls, botId: string) {
  const known = new Map<string, ReturnType<typeof readGuild>>()

  async function readGuild(target: DiscordTarget) {
    const { guildId } = target
    const guild = await explained(target, calls.read(Routes.guild(guildId), guildSchema))
    const { roles } = await explained(target, calls.read(Routes.guildMember(guildId, botId), memberSchema))
    return { guild, bot: { id: botId, roleIds: roles } }
  }

  return async (target: DiscordTarget) => {
    const { guildId, roleId } = target
    const reading = known.get(guildId) ?? readGuild(target)
    known.set(guildId, reading)
    const { guild, bot } = await reading
    const roleName = guild.roles.find(({ id }) => id === roleId)?.name ?? roleId
    return { guildName: guild.name, roleName, problem: roleProblem(guild, bot, target) }
  }
}

/** Checks that the bot is in each guild, with the permission and the role position to give each role. */
export async function checkTargets(calls: Calls, targets: readonly DiscordTarget[]) {
  try {
    const { id, username } = await readBot(calls)
    const findings: CheckFinding[] = [
      { about: 'discord', isFine: true, message: `The bot is ${JSON.stringify(username)} (${id}).` },
    ]
    const inspect = inspectionAs(calls, id)
    for (const target of targets) {
      const about = targetKey(target)
      const finding = await inspect(target).then(
        ({ guildName, roleName, problem }) => {
          const fine = `The bot may give and take the role ${JSON.stringify(roleName)} in ${JSON.stringify(guildName)}.`
          return { about, isFine: problem === null, message: problem?.message ?? fine }
        },
        (error: unknown) => notFine(about, error),
      )
      findings.push(finding)
    }
    return findings
  } catch (error) {
    return [notFine('discord', error)]
  }
}

function notFine(about: string, error: unknown): CheckFinding {
  if (error instanceof Refusal) {
    const message = `Discord refused: ${error.message} (${error.status}): check sync.discord.`
    return { about, isFine: false, message }
  }
  return failedCheck(about, error)
}
