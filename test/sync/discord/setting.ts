import { inspect } from 'node:util'
import { expect } from 'vitest'
import { createDiscordPlatform } from '../../../src/sync/discord/platform.js'
import { createOutgoing } from '../../../src/sync/outgoing.js'
import { ActionRequiredError, type Platform, RetryableError } from '../../../src/sync/platform.js'
import type { DiscordTarget } from '../../../src/sync/target.js'
import { BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../../platforms/discord-ids.js'
import { type DiscordOptions, type LocalDiscord, startDiscord } from '../../platforms/discord-server.js'

export const GOLD: DiscordTarget = {
  adapter: 'discord',
  guildId: GUILD_ID,
  roleId: GOLD_ROLE_ID,
  environment: 'live',
}

export interface Setting {
  readonly discord: LocalDiscord
  readonly platform: Platform<DiscordTarget>
}

export interface SettingOptions extends DiscordOptions {
  readonly clock?: () => number
  readonly timeoutMs?: number
}

/** The platform, and a Discord of its own behind it. */
export async function startSetting({
  clock = Date.now,
  timeoutMs = 60_000,
  ...options
}: SettingOptions = {}): Promise<Setting> {
  const discord = await startDiscord(options)
  const outgoing = createOutgoing(() => true)
  const platform = createDiscordPlatform({
    botToken: BOT_TOKEN,
    apiUrl: discord.url,
    clock,
    outgoing,
    timeoutMs,
  })
  return { discord, platform }
}

/** How a call failed: by one of the two errors that there are, and without the token anywhere in it. */
export async function failure(call: Promise<unknown>): Promise<RetryableError | ActionRequiredError> {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof RetryableError || error instanceof ActionRequiredError)) {
    throw new Error(`Neither of the two errors, but ${inspect(error)}`)
  }
  const shown = [inspect(error, { depth: null, showHidden: true }), JSON.stringify(error), error.stack]
  expect(shown.join('\n')).not.toContain(BOT_TOKEN)
  expect(error.cause).toBeUndefined()
  return error
}

export async function collect(accounts: AsyncIterable<string> | undefined): Promise<readonly string[]> {
  const all: string[] = []
  for await (const account of accounts ?? []) all.push(account)
  return all
}
