import { RequestMethod } from '@discordjs/rest'
import { RESTJSONErrorCodes, Routes } from 'discord-api-types/v10'
import { ActionRequiredError, type Platform, RetryableError } from '../platform.js'
import type { DiscordTarget } from '../target.js'
import { type Calls, type CallsDeps, createCalls, isRefusal } from './calls.js'
import {
  actionRequired,
  checkTargets,
  explained,
  inspectionAs,
  memberPageSchema,
  memberSchema,
  readBot,
  requireAccount,
} from './permissions.js'

/** Calls of one kind to one guild run one after another anyway; this many kinds and guilds run in parallel. */
const CONCURRENCY = 4

/**
 * Roles of the community. Discord gives roles only to members of a guild: `observe` and `give` reject with
 * `member_not_in_guild` until the account joins. A member who leaves loses the role, but other bots restore the roles
 * of members who rejoin: so `take` reports such an account as gone.
 */
export function createDiscordPlatform(deps: CallsDeps): Platform<DiscordTarget> {
  const calls = createCalls(deps)

  /** Discord doesn't say which permission is missing: this finds out. */
  async function inspected(error: unknown, target: DiscordTarget): Promise<unknown> {
    if (!isRefusal(error, RESTJSONErrorCodes.MissingPermissions)) return error
    try {
      const { id } = await readBot(calls)
      return (await inspectionAs(calls, id)(target)).problem ?? error
    } catch (failure) {
      // The refusal is known already; the check would only have added detail.
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
    requireAccount(accountId)
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
      requireAccount(accountId)
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
    listMembers: createRoleHolders(calls),
    check: (targets) => checkTargets(calls, targets),
  }
}

/** Nobody has a deleted role: it counts as taken. */
function unlessGone(error: unknown): 'gone' | undefined {
  const { UnknownMember, UnknownUser, UnknownRole } = RESTJSONErrorCodes
  if (isRefusal(error, UnknownMember, UnknownUser)) return 'gone'
  if (isRefusal(error, UnknownRole)) return undefined
  throw error
}

/** Discord's maximum page size. */
const PAGE_SIZE = 1_000

/** Reads the whole guild, page by page, for the accounts with the target's role. */
function createRoleHolders(calls: Calls) {
  async function readPage(target: DiscordTarget, after: bigint) {
    try {
      const query = { limit: String(PAGE_SIZE), after: String(after) }
      return await calls.read(Routes.guildMembers(target.guildId), memberPageSchema, query)
    } catch (error) {
      if (isRefusal(error, RESTJSONErrorCodes.MissingAccess, RESTJSONErrorCodes.MissingPermissions)) {
        throw notListable(target)
      }
      throw actionRequired(error, target)
    }
  }

  return async function* roleHolders(target: DiscordTarget): AsyncGenerator<string, void, undefined> {
    let after = 0n
    for (;;) {
      const page = await readPage(target, after)
      for (const { user, roles } of page) if (roles.includes(target.roleId)) yield user.id
      const highest = page.reduce(
        (most, { user }) => (BigInt(user.id) > most ? BigInt(user.id) : most),
        after,
      )
      // A page that makes no progress also ends the listing, whatever its length: the loop would never end.
      if (page.length < PAGE_SIZE || highest === after) return
      after = highest
    }
  }
}

/** Concerns only this call: looking up members and giving roles works without the intent. */
function notListable({ guildId }: DiscordTarget): ActionRequiredError {
  const message = `The bot may not list the members of the server ${guildId}: turn on the Server Members Intent in Discord's developer portal.`
  return new ActionRequiredError('members_not_listable', message, { mayHeal: true })
}
