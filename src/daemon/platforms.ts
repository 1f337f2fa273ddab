import type { BotConfig, SyncConfig } from '../config/sync.js'
import type { Messenger } from '../handlers/telegram.js'
import { PLATFORM_NAMES, type PlatformName } from '../provider/accounts.js'
import type { Outages, Reach } from '../sync/outages.js'
import type { Outgoing } from '../sync/outgoing.js'
import type { Platform } from '../sync/platform.js'
import type { Tracing } from '../tracing.js'
import type { TelegramDeps } from './telegram.js'

export interface PlatformsDeps extends TelegramDeps {
  readonly outages: Outages
  /** Of calls that a library may keep in a queue while sync is paused. */
  readonly queued: Outgoing
  readonly tracing?: Tracing | undefined
}

/** A platform for one bot. `start` and `stop` are about its work in the background. */
interface Adapter {
  readonly platform: Platform
  readonly start?: () => void
  readonly stop?: () => Promise<void>
  /** Lets customers join by a link. */
  readonly messenger?: Messenger
}
type MakeAdapter = (deps: PlatformsDeps, bot: BotConfig, reach: Reach) => Adapter

/** The code of each platform, which takes as long to load as most of the rest of a start. */
const LOADERS: Readonly<Record<PlatformName, () => Promise<MakeAdapter>>> = {
  async discord() {
    const { createDiscordPlatform } = await import('../sync/discord/platform.js')
    return ({ clock, queued: outgoing }, bot, reach) => ({
      platform: createDiscordPlatform({ ...bot, clock, reach, outgoing }),
    })
  },
  telegram: async () => (await import('./telegram.js')).createTelegram,
}

/** The configured platforms. If a platform's config did not change, it keeps its known limits. */
export function createPlatforms(deps: PlatformsDeps) {
  const { outages, tracing, log } = deps
  let used: ReadonlyMap<PlatformName, { readonly config: string; readonly adapter: Adapter }> = new Map()
  let started: readonly Adapter[] = []
  /** One poller at a time: the next one starts when the last has stopped. */
  let turning: Promise<void> = Promise.resolve()
  const adapters = () => [...used.values()].map(({ adapter }) => adapter)

  return {
    /** Loads the code of the configured platforms. Returns a function that puts them to use. */
    async prepare(config: Pick<SyncConfig, PlatformName>): Promise<() => readonly Platform[]> {
      const configured = PLATFORM_NAMES.flatMap((name) =>
        config[name] === null ? [] : [[name, config[name]] as const],
      )
      const makers = await Promise.all(
        configured.map(async ([name, bot]) => ({ name, bot, make: await LOADERS[name]() })),
      )
      return () => {
        used = new Map(
          makers.map(({ name, bot, make }) => {
            const [known, config] = [used.get(name), JSON.stringify(bot)]
            if (known?.config === config) return [name, known]
            const adapter = make(deps, bot, outages.of(name))
            const platform = tracing?.ofPlatform(adapter.platform) ?? adapter.platform
            return [name, { config, adapter: { ...adapter, platform } }]
          }),
        )
        return adapters().map(({ platform }) => platform)
      }
    },
    /** Starts the work in the background of new adapters, once that of the ones that they replace has ended. */
    start(): void {
      const [last, next] = [started, adapters()]
      started = next
      turning = turning
        .then(async () => {
          for (const one of last) if (!next.includes(one)) await one.stop?.()
        })
        .catch((error: unknown) => log.error({ err: error }, 'a replaced platform did not stop'))
        .then(() => {
          for (const one of next) if (!last.includes(one)) one.start?.()
        })
    },
    /** Null: none is configured. */
    messenger: () => adapters().flatMap(({ messenger }) => messenger ?? [])[0] ?? null,
    /** The next `prepare` creates what has stopped again. */
    async stop(): Promise<void> {
      await turning
      await Promise.all(started.map((one) => one.stop?.()))
      used = new Map([...used].filter(([, { adapter }]) => adapter.stop === undefined))
      started = []
    },
  }
}
