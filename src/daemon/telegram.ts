import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { TelegramConfig } from '../config/sync.js'
import { LatchkeyError } from '../errors.js'
import type { PerformAct } from '../people/acts.js'
import type { Database } from '../store/schema.js'
import { isSyncPaused } from '../store/sync-state.js'
import type { WriteSync } from '../store/sync-writes.js'
import type { Reach } from '../sync/outages.js'
import { ActionRequiredError, type Platform, RetryableError } from '../sync/platform.js'
import type { Sync } from '../sync/sync.js'
import type { SyncedProduct, TelegramTarget } from '../sync/target.js'
import { createCalls } from '../sync/telegram/calls.js'
import { createGroups, createInviteLink } from '../sync/telegram/groups.js'
import { createHandleUpdate } from '../sync/telegram/handle-update.js'
import {
  type Customer,
  createJoinLinks,
  type Invite,
  type InviteRequest,
  type JoinLinksDeps,
  type LinkToken,
} from '../sync/telegram/join-links.js'
import { createTelegramPlatform } from '../sync/telegram/platform.js'
import { createReceiver } from '../sync/telegram/receive.js'
import type { Guard } from './guards.js'

/** Opens a chat with the bot in every Telegram client. */
const DEEP_LINKS = 'https://t.me'

export interface TelegramDeps {
  readonly config: TelegramConfig
  /** Asked each time, since a reload may change them. */
  readonly products: () => readonly SyncedProduct[]
  readonly db: Kysely<Database>
  readonly writeSync: WriteSync
  readonly readAccess: JoinLinksDeps['readAccess']
  readonly performAct: PerformAct
  readonly accountAsked: Sync['accountAsked']
  /** Told when something begins to keep updates out that somebody has to mend, and when it does no more. */
  readonly receptionChanged: () => void
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  readonly reach: Reach
  readonly log: Logger
}

export interface Telegram {
  readonly platform: Platform<TelegramTarget>
  /** Begins to receive updates, in the background. */
  start(): void
  /** Resolves once no update is handled any more. */
  stop(): Promise<void>
  /** How a delivered update is proved, and where it goes; null: updates are fetched. */
  readonly updates: {
    readonly secret: string
    handle(update: unknown): Promise<void>
  } | null
  /** @throws {LatchkeyError} `group_not_found`, `not_entitled`, `platform_unavailable`, `platform_refused` */
  invite(request: InviteRequest): Promise<readonly Invite[]>
  /** @throws {LatchkeyError} `platform_unavailable`, `platform_refused` */
  linkToken(customer: Customer): Promise<LinkToken & { readonly url: string }>
}

/** The messenger, put together. */
export function createTelegram({
  config,
  products,
  db,
  writeSync,
  readAccess,
  performAct,
  accountAsked,
  receptionChanged,
  clock,
  random,
  reach,
  log,
}: TelegramDeps): Telegram {
  const call = createCalls({ ...config, clock, reach })
  const groups = createGroups(call, db, writeSync)
  /** Without the @; asked once. */
  let username: string | null = null
  const joinLinks = createJoinLinks({
    db,
    writeSync,
    linkAccount: linkBy(performAct),
    products,
    readAccess,
    createInviteLink: (groupId, expiresAt) => createInviteLink(groups, groupId, expiresAt),
    clock,
  })
  const handleUpdate = createHandleUpdate({
    call,
    groups,
    targets: () => products().flatMap(({ targets }) => targets.filter((one) => one.adapter === 'telegram')),
    joinLinks,
    accountAsked,
    isPaused: () => isSyncPaused(db),
    log,
  })
  const { updates } = config
  const receiver = createReceiver({
    call,
    handleUpdate,
    updates,
    changed: receptionChanged,
    clock,
    random,
    log,
  })
  return {
    platform: createTelegramPlatform({
      call,
      groups,
      checkUpdates: receiver.check,
      db,
      writeSync,
    }),
    start: receiver.start,
    stop: receiver.stop,
    updates: updates && { secret: updates.secret, handle: orPlatformFailure(handleUpdate) },
    invite: orPlatformFailure(joinLinks.invite),
    linkToken: orPlatformFailure(async (customer: Customer) => {
      username ??= (await call((api) => api.getMe())).username
      const made = await joinLinks.newLinkToken(customer)
      return { ...made, url: `${DEEP_LINKS}/${username}?start=${made.token}` }
    }),
  }
}

/** Links by hand, as it were: an act like an operator's, under the messenger's name. */
function linkBy(performAct: PerformAct): JoinLinksDeps['linkAccount'] {
  return ({ environment, customerId, accountId, key, reason }) =>
    performAct({
      environment,
      customerId,
      act: { type: 'manual.identity_linked', communityId: null, messengerId: accountId },
      actor: 'telegram',
      reason,
      idempotencyKey: `telegram ${key}`,
    })
}

/** Says why something that was asked of the platform could not be had. */
export const orPlatformFailure: Guard =
  (ask) =>
  async (...args) => {
    try {
      return await ask(...args)
    } catch (error) {
      if (error instanceof RetryableError) throw new LatchkeyError('platform_unavailable', error.message)
      if (error instanceof ActionRequiredError) throw new LatchkeyError('platform_refused', error.message)
      throw error
    }
  }
