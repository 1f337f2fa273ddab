import { ActionRequiredError } from '../../platform-errors.js'
import type { DiscordTarget } from '../../target.js'

/** Discord's ids are numbers of 64 bits that begin with an instant; the earliest have 17 digits. */
export const DISCORD_ID = /^\d{17,20}$/

/**
 * Refuses what is no id before any call is made with it: ids become parts of paths.
 * @throws {ActionRequiredError} `account_invalid`, `target_invalid`
 */
export function requireIds(target: DiscordTarget, accountId: string): void {
  requireTargetIds(target)
  if (DISCORD_ID.test(accountId)) return
  // What is linked instead may be an email address or the like, so it is not repeated.
  throw new ActionRequiredError(
    'account_invalid',
    'The linked account is no Discord user id, which is a number of 17 to 20 digits: link the right one.',
  )
}

/** @throws {ActionRequiredError} `target_invalid` */
export function requireTargetIds({ guildId, roleId }: DiscordTarget): void {
  if (DISCORD_ID.test(guildId) && DISCORD_ID.test(roleId)) return
  throw new ActionRequiredError(
    'target_invalid',
    'The guildId or the roleId of the target is no Discord id, which is a number of 17 to 20 digits: correct it.',
    { scope: 'target' },
  )
}
