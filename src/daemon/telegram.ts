import type { BotConfig } from '../config/sync.js'
import { LatchkeyError } from '../errors.js'
import type { PerformAct } from '../people/acts.js'
import type { PersonKey } from '../store/schema.js'
import type { Reach } from '../sync/outages.js'
import type { Outgoing } from '../sync/outgoing.js'
import { ActionRequiredError, RetryableError } from '../sync/platform.js'
import { createCalls } from '../sync/telegram/calls.js'
import type { TelegramContext } from '../sync/telegram/context.js'
import { createGroups } from '../sync/telegram/groups.js'
import { createHandleUpdate } from '../sync/telegram/handle-update.js'
import { createJoinLinks } from '../sync/telegram/join-links.js'
import { createTelegramPlatform } from '../sync/telegram/platform.js'
import { createReceiver } from '../sync/telegram/receive.js'

/** Opens a chat with the bot in every Telegram client. */
const DEEP_LINKS = 'https://t.me'

export interface TelegramDeps extends Omit<TelegramContext, 'call' | 'groups' | 'linkAccount'> {
  readonly performAct: PerformAct
  readonly outgoing: Outgoing
}

export type Telegram = ReturnType<typeof createTelegram>

/** The assembled messenger. */
export function createTelegram(
  { performAct, outgoing, ...deps }: TelegramDeps,
  config: BotConfig,
  reach: Reach,
) {
  const call = createCalls({ ...config, clock: deps.clock, reach, outgoing })
  const groups = createGroups(call, deps, deps.products)
  const context: TelegramContext = { ...deps, call, groups, linkAccount: linkBy(performAct) }
  /** Without the @; asked once. */
  let username: string | null = null
  const joinLinks = createJoinLinks(context)
  const receiver = createReceiver(context, createHandleUpdate(context, joinLinks))
  return {
    platform: createTelegramPlatform(context, receiver.check),
    /** Starts receiving updates in the background. */
    start: receiver.start,
    /** Resolves once no update is being handled any more. */
    stop: receiver.stop,
    messenger: {
      /** @throws {LatchkeyError} `group_not_found`, `not_entitled`, `platform_unavailable`, `platform_refused` */
      invite: orPlatformFailure(joinLinks.invite),
      /** @throws {LatchkeyError} `platform_unavailable`, `platform_refused` */
      linkToken: orPlatformFailure(async (customer: PersonKey) => {
        username ??= (await call((api) => api.getMe())).username
        const made = await joinLinks.newLinkToken(customer)
        return { ...made, url: `${DEEP_LINKS}/${username}?start=${made.token}` }
      }),
    },
  }
}

/** Links an account as a change by hand, under the messenger's name. */
function linkBy(performAct: PerformAct): TelegramContext['linkAccount'] {
  return ({ environment, customerId, accountId, key, reason }) =>
    performAct({
      environment,
      customerId,
      act: { type: 'manual.identity_linked', accounts: { messengerId: accountId } },
      actor: 'telegram',
      reason,
      // No header can hold NUL: no Idempotency-Key of a request is the same.
      idempotencyKey: `telegram\0${key}`,
    })
}

/** Turns a platform's error into one for the caller. */
function orPlatformFailure<Asked, Answer>(
  ask: (asked: Asked) => Promise<Answer>,
): (asked: Asked) => Promise<Answer> {
  return async (asked) => {
    try {
      return await ask(asked)
    } catch (error) {
      if (error instanceof RetryableError) throw new LatchkeyError('platform_unavailable', error.message)
      if (error instanceof ActionRequiredError) throw new LatchkeyError('platform_refused', error.message)
      throw error
    }
  }
}
