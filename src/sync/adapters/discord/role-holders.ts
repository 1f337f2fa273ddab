import { setTimeout as wait } from 'node:timers/promises'
import { RESTJSONErrorCodes, Routes } from 'discord-api-types/v10'
import { ActionRequiredError, RetryableError } from '../../platform-errors.js'
import type { DiscordTarget } from '../../target.js'
import { actionRequired } from './action-required.js'
import type { Calls } from './calls.js'
import { requireTargetIds } from './ids.js'
import { isRefusal } from './refusal.js'
import { memberPageSchema } from './shapes.js'

/** The most that Discord hands out at once. */
const PAGE_SIZE = 1_000
/** Discord's windows for this call are shorter; who limits for longer is not waited for. */
const LONGEST_WAIT_MS = 30_000

export interface RoleHoldersDeps {
  readonly calls: Calls
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/** Reads the whole guild, page by page, for the accounts that hold the target's role. */
export function createRoleHolders({ calls, clock }: RoleHoldersDeps) {
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

  /** Waits out limits: a listing begun anew would meet the same ones, and a large guild's never end. */
  async function readPatiently(target: DiscordTarget, after: bigint) {
    for (;;) {
      try {
        return await readPage(target, after)
      } catch (error) {
        const waitMs = limitOf(error, clock())
        if (waitMs === null || waitMs > LONGEST_WAIT_MS) throw error
        await wait(waitMs, undefined, { ref: false })
      }
    }
  }

  return async function* roleHolders(target: DiscordTarget): AsyncGenerator<string, void, undefined> {
    requireTargetIds(target)
    let after = 0n
    for (;;) {
      const page = await readPatiently(target, after)
      for (const { user, roles } of page) if (roles.includes(target.roleId)) yield user.id
      const highest = page.reduce(
        (most, { user }) => (BigInt(user.id) > most ? BigInt(user.id) : most),
        after,
      )
      // A page that leads no further ends the listing too, whatever its length: it would be read for ever.
      if (page.length < PAGE_SIZE || highest === after) return
      after = highest
    }
  }
}

/** How long a limit lasts from `now` on, in milliseconds; null: the error is none. */
function limitOf(error: unknown, now: number): number | null {
  if (!(error instanceof RetryableError) || error.code !== 'rate_limited') return null
  return error.notBefore === null ? null : Math.max(error.notBefore - now, 0)
}

/** It concerns this call alone: members are looked up and given roles without it. */
function notListable({ guildId }: DiscordTarget): ActionRequiredError {
  return new ActionRequiredError(
    'members_not_listable',
    `The bot may not list the members of the server ${guildId}: turn on the Server Members Intent in Discord's ` +
      'developer portal.',
    { mayHeal: true },
  )
}
