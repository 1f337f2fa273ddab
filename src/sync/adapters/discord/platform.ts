import { RequestMethod } from '@discordjs/rest'
import { RESTJSONErrorCodes, Routes } from 'discord-api-types/v10'
import type { Platform } from '../../platform.js'
import { ActionRequiredError, RetryableError } from '../../platform-errors.js'
import type { DiscordTarget } from '../../target.js'
import { explained } from './action-required.js'
import { type CallsDeps, createCalls } from './calls.js'
import { createCheck } from './check.js'
import { requireIds } from './ids.js'
import { createInspections } from './inspection.js'
import { isRefusal } from './refusal.js'
import { createRoleHolders } from './role-holders.js'
import { memberSchema } from './shapes.js'

/** Calls of one kind to one guild are made one after another anyway: this many kinds and guilds go on side by side. */
const CONCURRENCY = 4

/**
 * Roles of the community. Nobody outside a guild can be given one: `observe` and `give` reject with
 * `member_not_in_guild` until the account joins. Who leaves has lost the role, but bots of others give roles back to
 * whoever rejoins: for `take` such an account is gone.
 */
export function createDiscordPlatform(deps: CallsDeps): Platform<DiscordTarget> {
  const calls = createCalls(deps)
  const inspections = createInspections(calls)

  /** Discord doesn't tell which permission is missing: looks for what it is. */
  async function inspected(error: unknown, target: DiscordTarget): Promise<unknown> {
    if (!isRefusal(error, RESTJSONErrorCodes.MissingPermissions)) return error
    try {
      const { id } = await inspections.bot()
      return (await inspections.inspectAs(id)(target)).problem ?? error
    } catch (failure) {
      // The refusal is known already; this only would have said more.
      if (failure instanceof RetryableError || failure instanceof ActionRequiredError) return error
      throw failure
    }
  }

  async function change(
    method: RequestMethod.Put | RequestMethod.Delete,
    target: DiscordTarget,
    accountId: string,
    reason: string,
  ) {
    requireIds(target, accountId)
    const route = Routes.guildMemberRole(target.guildId, accountId, target.roleId)
    try {
      await calls.change(method, route, reason)
    } catch (error) {
      throw await inspected(error, target)
    }
  }

  return {
    name: 'discord',
    concurrency: CONCURRENCY,
    async observe(target, accountId) {
      requireIds(target, accountId)
      const route = Routes.guildMember(target.guildId, accountId)
      const { roles } = await explained(target, calls.read(route, memberSchema))
      return roles.includes(target.roleId) ? 'member' : 'absent'
    },
    async give(target, accountId) {
      await explained(target, change(RequestMethod.Put, target, accountId, 'Latchkey: access began'))
    },
    async take(target, accountId) {
      const taking = change(RequestMethod.Delete, target, accountId, 'Latchkey: access ended')
      return explained(
        target,
        taking.then(() => undefined, unlessGone),
      )
    },
    listMembers: createRoleHolders({ calls, clock: deps.clock }),
    check: createCheck(inspections),
  }
}

/** A role that was deleted is held by nobody: it is taken. */
function unlessGone(error: unknown): 'gone' | undefined {
  const { UnknownMember, UnknownUser, UnknownRole } = RESTJSONErrorCodes
  if (isRefusal(error, UnknownMember, UnknownUser)) return 'gone'
  if (isRefusal(error, UnknownRole)) return undefined
  throw error
}
