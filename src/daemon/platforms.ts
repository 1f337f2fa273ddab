import type { Logger } from 'pino'
import type { BotConfig, SyncConfig } from '../config/sync.js'
import type { Outages } from '../sync/outages.js'
import type { Platform } from '../sync/platform.js'
import type { DiscordTarget } from '../sync/target.js'
import type { Telegram, TelegramDeps } from './telegram.js'

export interface PlatformsDeps extends TelegramDeps {
  readonly outages: Outages
  readonly log: Logger
}

interface Used<Of> {
  /** The config that it was made for. */
  readonly config: string
  readonly made: Of | null
}

/** The configured platforms. If a platform's config did not change, it keeps its known limits. */
export function createPlatforms(deps: PlatformsDeps) {
  const { clock, outages, log } = deps
  let discord: Used<Platform<DiscordTarget>> = { config: 'null', made: null }
  let telegram: Used<Telegram> = { config: 'null', made: null }
  let started: Telegram | null = null
  /** One poller at a time: the next one starts when the last has stopped. */
  let turning: Promise<void> = Promise.resolve()

  return {
    /**
     * Loads the code of the configured platforms, which takes as long as most of the rest of a start. Returns a
     * function that puts them to use.
     */
    async prepare(config: Pick<SyncConfig, 'discord' | 'telegram'>): Promise<() => readonly Platform[]> {
      const loadedDiscord = config.discord && (await import('../sync/discord/platform.js'))
      const loadedTelegram = config.telegram && (await import('./telegram.js'))
      return () => {
        discord = again(
          discord,
          config.discord,
          (bot) =>
            loadedDiscord?.createDiscordPlatform({ ...bot, clock, reach: outages.of('discord') }) ?? null,
        )
        telegram = again(
          telegram,
          config.telegram,
          (bot) => loadedTelegram?.createTelegram(deps, bot, outages.of('telegram')) ?? null,
        )
        // A platform is only asked about targets of its own adapter.
        const made = [discord.made, telegram.made?.platform ?? null] as (Platform | null)[]
        return made.filter((one) => one !== null)
      }
    },
    /** Starts receiving updates in the background. */
    start(): void {
      const [last, next] = [started, telegram.made]
      if (last === next) return
      started = next
      turning = turning
        .then(() => last?.stop())
        .catch((error: unknown) => log.error({ err: error }, 'the previous messenger did not stop'))
        .then(() => next?.start())
    },
    messenger: () => telegram.made,
    /** A messenger that has stopped is made anew by the next `prepare`. */
    async stop(): Promise<void> {
      await turning
      await started?.stop()
      if (started !== null) telegram = { config: 'null', made: null }
      started = null
    },
  }
}

function again<Bot extends BotConfig, Of>(
  used: Used<Of>,
  bot: Bot | null,
  make: (bot: Bot) => Of | null,
): Used<Of> {
  const config = JSON.stringify(bot)
  return config === used.config ? used : { config, made: bot === null ? null : make(bot) }
}
