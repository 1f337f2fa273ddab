import { RESTJSONErrorCodes } from 'discord-api-types/v10'
import { ActionRequiredError } from '../../platform-errors.js'
import type { DiscordTarget } from '../../target.js'
import { Refusal } from './refusal.js'

/** Turns a refusal into what somebody has to do; any other error stays as it is. */
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
        'Discord knows no account by the linked id: link the right one.',
      )
    case RESTJSONErrorCodes.UnknownGuild:
      return new ActionRequiredError(
        'guild_not_found',
        `The bot knows no server ${guildId}: see that the guildId is right, and invite the bot.`,
        { scope: 'target' },
      )
    case RESTJSONErrorCodes.UnknownRole:
      return new ActionRequiredError(
        'role_not_found',
        `The server ${guildId} has no role ${roleId}: correct the roleId.`,
        { scope: 'target' },
      )
    case RESTJSONErrorCodes.MissingAccess:
      return new ActionRequiredError(
        'missing_access',
        `The bot has no access to the server ${guildId}: invite it, with the permission Manage Roles.`,
        { scope: 'target' },
      )
    case RESTJSONErrorCodes.MissingPermissions:
      return new ActionRequiredError(
        'missing_permission',
        `The bot may not give the role ${roleId} in the server ${guildId}: give the bot the permission Manage ` +
          'Roles, and put its own role above that one in the list of roles.',
        { scope: 'target' },
      )
    default:
      // Discord blocks who is forbidden too often: a 403 that is not known may stand in the way of all the target's
      // calls, and one of them is enough to find out.
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
