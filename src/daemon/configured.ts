/* Starts a daemon that can read its config again while it runs. */

import { isDeepStrictEqual } from 'node:util'
import type { DestinationStream, Logger } from 'pino'
import { findExpired } from '../config/endpoints.js'
import type { LoadedConfig } from '../config/load.js'
import type { Config } from '../config/schema.js'
import { startDaemon } from '../daemon.js'
import { isLatchkeyError, issueLine } from '../errors.js'
import type { Reloaded } from '../handlers/control.js'
import { createLogger } from '../log.js'
import type { Tracing } from '../tracing.js'

export interface ConfiguredOptions {
  /** Called at the start and at each reload. */
  readonly load: () => LoadedConfig
  /** Takes the lines of the log; by default standard output. */
  readonly logTo?: DestinationStream | undefined
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly version: string
  /** If omitted, nothing is traced. */
  readonly startTracing?: (log: Logger) => Promise<Tracing | undefined>
  /** Called when a request asks the daemon to stop. If omitted, it stops, and the process goes on. */
  readonly stop?: () => void
}

/** @throws what `load` throws, and what `startDaemon` throws */
export async function startConfigured(options: ConfiguredOptions) {
  const { load, logTo, clock, version, startTracing, stop } = options
  const { config, warnings } = load()
  const log = createLogger(config.log.level, logTo)
  for (const warning of [...warnings, ...findExpired(config.endpoints, clock())])
    log.warn(`config: ${issueLine(warning)}`)

  let current = config
  const stopAlone = (): void =>
    void starting
      .then((daemon) => daemon.stop())
      .catch((error: unknown) => log.error({ err: error }, 'some parts of the daemon did not stop'))
  const control = { version, reload, stop: stop ?? stopAlone }
  const tracing = await startTracing?.(log)
  const starting = startDaemon(config, { clock, log, control, tracing })
  return { daemon: await starting, log, reload }

  /** @throws the problem with the file, after logging it; the running config stays */
  async function reload(): Promise<Reloaded> {
    const running = await starting
    try {
      const { config: next, warnings: reloaded } = load()
      const policyDiffers = await running.reload(next)
      const takenOver = Object.entries(TAKEN_OVER)
        .filter(([, part]) => !isDeepStrictEqual(part(current), part(next)))
        .map(([name]) => name)
      current = next
      // At the more verbose of the two levels, so that a change of the level itself is logged.
      if (!log.isLevelEnabled('info')) log.level = next.log.level
      for (const warning of reloaded) log.warn(`config: ${issueLine(warning)}`)
      const restart = changedPaths(needingRestart(config), needingRestart(next))
      if (restart.length > 0) log.warn(`these changes in the config need a restart: ${restart.join(', ')}`)
      running.noteConfig(
        restart.length === 0 ? null : `Changes in the config need a restart: ${restart.join(', ')}.`,
      )
      const what =
        takenOver.length > 0
          ? `now using ${takenOver.join(', ')}`
          : restart.length > 0
            ? 'no change takes effect before a restart'
            : 'nothing has changed'
      log.info(`read the config again: ${what}`)
      log.level = next.log.level
      return { changed: takenOver, needsRestart: restart, policyDiffers }
    } catch (error) {
      const problem = isLatchkeyError(error) ? { why: error.message, issues: error.issues } : { err: error }
      log.error(problem, 'config reload failed; keeping the running config')
      running.noteConfig(
        'Could not read the config file again: the previous config stays in use. See the log.',
      )
      throw error
    }
  }
}

/** The settings that a running daemon can apply, by their names in the config. */
const TAKEN_OVER: Readonly<Record<string, (config: Config) => unknown>> = {
  endpoints: ({ endpoints }) => endpoints,
  'api.keys': ({ apiKeys }) => apiKeys,
  products: ({ products }) => products,
  sync: ({ sync }) => sync,
  'log.level': ({ log }) => log.level,
}

/** All other settings. The daemon itself reports a changed policy. */
function needingRestart(config: Config): object {
  const { path, endpoints, apiKeys, policy, products, sync, log, database, provider, ...rest } = config
  const { live, sandbox } = provider
  return { ...rest, provider: { live, sandbox }, database: { url: database.url, ...database.postgres } }
}

/** `['server.port', 'retention.bodiesAfter']`: the differences, as the config names them. */
function changedPaths(before: unknown, after: unknown, path: readonly string[] = []): readonly string[] {
  if (isDeepStrictEqual(before, after)) return []
  const keys = new Set([before, after].flatMap((value) => (isObject(value) ? Object.keys(value) : [])))
  // Durations in the file are milliseconds here.
  if (keys.size === 0) return [path.join('.').replace(/Ms$/, '')]
  return [...keys].flatMap((key) => {
    const at = (value: unknown): unknown => (isObject(value) ? Reflect.get(value, key) : undefined)
    return changedPaths(at(before), at(after), [...path, key])
  })
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
