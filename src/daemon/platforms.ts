import type { Logger } from 'pino'
import type { BotConfig, SyncConfig } from '../config/types.js'
import { createDiscordPlatform } from '../sync/adapters/discord/platform.js'
import type { Platform } from '../sync/platform.js'
import type { DiscordTarget } from '../sync/target.js'
import { createTelegram, type Telegram, type TelegramDeps } from './telegram.js'

export interface PlatformsDeps extends Omit<TelegramDeps, 'config'> {
  readonly log: Logger
}

/** The platforms that are configured. One whose configuration stays keeps what it knows of its limits. */
export interface Platforms {
  use(config: Pick<SyncConfig, 'discord' | 'telegram'>): readonly Platform[]
  /** Begins to receive what the platforms tell, in the background. */
  start(): void
  messenger(): Telegram | null
  stop(): Promise<void>
}

interface Used<Of> {
  /** What it was made for. */
  readonly config: string
  readonly made: Of | null
}

export function createPlatforms(deps: PlatformsDeps): Platforms {
  const { clock, log } = deps
  let discord: Used<Platform<DiscordTarget>> = { config: 'null', made: null }
  let telegram: Used<Telegram> = { config: 'null', made: null }
  let started: Telegram | null = null
  /** One poller at a time: the next one starts when the last has stopped. */
  let turning: Promise<void> = Promise.resolve()

  return {
    use(config) {
      discord = again(discord, config.discord, (bot) => createDiscordPlatform({ ...bot, clock }))
      telegram = again(telegram, config.telegram, (bot) => createTelegram({ ...deps, config: bot }))
      // Each is asked about targets of its own adapter only.
      const made = [discord.made, telegram.made?.platform ?? null] as (Platform | null)[]
      return made.filter((one) => one !== null)
    },
    start() {
      const [last, next] = [started, telegram.made]
      if (last === next) return
      started = next
      turning = turning
        .then(() => last?.stop())
        .catch((error: unknown) => log.error({ err: error }, 'the former messenger did not stop'))
        .then(() => next?.start())
    },
    messenger: () => telegram.made,
    async stop() {
      await turning
      await started?.stop()
    },
  }
}

function again<Bot extends BotConfig, Of>(used: Used<Of>, bot: Bot | null, make: (bot: Bot) => Of): Used<Of> {
  const config = JSON.stringify(bot)
  return config === used.config ? used : { config, made: bot === null ? null : make(bot) }
}
