import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import type { Logger } from 'pino'
import { findExpired } from '../config/endpoints.js'
import { createFirstConfig, type FirstConfig, type FirstConfigOptions } from '../config/first-start.js'
import { loadConfig } from '../config/load.js'
import { locateConfig } from '../config/locate.js'
import type { Config } from '../config/schema.js'
import { type Daemon, startDaemon } from '../daemon.js'
import { isLatchkeyError, issueLine, LatchkeyError } from '../errors.js'
import type { Reloaded } from '../handlers/control.js'
import { createLogger, terminalLines } from '../log.js'
import { packageFile, packageVersion } from '../package-file.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import type { CliContext, SharedOptions } from './context.js'

/** Only the daemon's user can read the files that it creates. */
const PRIVATE = 0o077

/**
 * Collects a heap when it has doubled since the last time, in every thread. (By default it would grow fourfold where
 * there is memory. Under full load 260 MB resident instead of 320, for 3 % of the CPU time; at half load 235, for 10
 * %.)
 */
const COLLECT_SOONER = '--heap-growing-percent=100'

const STORE_FAILED =
  'The store has failed: nothing more was acknowledged. See what is wrong with `latchkey doctor`; ' +
  'if the database is damaged, replace it with a backup by `latchkey restore`.'

const NOTHING_TAKEN_OVER = 'no change that a running daemon can apply'

/** Serves until a signal stops it, or the store fails. */
export async function runDaemon(options: SharedOptions, context: CliContext): Promise<void> {
  process.umask(PRIVATE)
  setFlagsFromString(COLLECT_SOONER)
  let daemon: Daemon | null = null
  // Installed first, since SIGHUP without a handler ends the process; it does nothing until the daemon runs.
  process.on('SIGHUP', () => daemon && reload().catch(() => {}))
  const { path, named } = locateConfig({ option: options.config, env: context.env, folder: context.folder })
  if (!named && !existsSync(path)) {
    const { LATCHKEY_HOST: host, LATCHKEY_PORT: port } = context.env
    const { isTerminal, out, err } = context
    const schema = packageFile('config.schema.json')
    const { text } = makeFirstConfig({ path, isTerminal, host, port, schema })
    // If standard output is not a terminal, its reader expects log lines.
    if (isTerminal) out(text)
    else err(text)
  }
  const { config, warnings } = loadConfig({ path, env: context.env })
  const log = createLogger(config.log.level, context.isTerminal ? await terminalLines() : undefined)
  for (const warning of [...warnings, ...findExpired(config.endpoints, context.now())])
    log.warn(`config: ${issueLine(warning)}`)

  let current = config
  const { promise: stopped, resolve } = Promise.withResolvers<null>()
  const stop = () => resolve(null)
  const control = { version: packageVersion(), reload, stop }
  const tracing = await tracingOf(context.env, control.version, log)
  const starting = startDaemon(config, { clock: context.now, log, control, tracing })
  daemon = await starting
  onStopSignal(stop)
  // Last: a reader of the pid may send a signal at once.
  const { url, webhooksUrl, metricsUrl } = daemon
  log.info({ url, webhooksUrl, metricsUrl, pid: process.pid }, `serving on ${url}`)

  const failed = await Promise.race([stopped, daemon.failure.then((error) => ({ error }))])
  log.info('stopping')
  await daemon.stop()
  await tracing?.stop()
  if (failed !== null) {
    log.fatal({ err: failed.error }, 'the store has failed')
    throw new LatchkeyError('store_unavailable', STORE_FAILED, { cause: failed.error })
  }
  log.info('stopped')

  /** @throws the problem with the file, after logging it; the running config stays */
  async function reload(): Promise<Reloaded> {
    const running = await starting
    try {
      const { config: next, warnings: reloaded } = loadConfig({ path, env: context.env })
      const policyDiffers = await running.reload(next)
      const takenOver = changedParts(current, next)
      current = next
      // At the more verbose of the two levels, so that a change of the level itself is logged.
      if (!log.isLevelEnabled('info')) log.level = next.log.level
      for (const warning of reloaded) log.warn(`config: ${issueLine(warning)}`)
      const restart = changedPaths(needingRestart(config), needingRestart(next))
      if (restart.length > 0) log.warn(`these changes in the config need a restart: ${restart.join(', ')}`)
      running.noteConfig(
        restart.length === 0 ? null : `Changes in the config need a restart: ${restart.join(', ')}.`,
      )
      const what = takenOver.length > 0 ? `took over ${takenOver.join(', ')}` : NOTHING_TAKEN_OVER
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

/** Loaded only if it is used: it takes as much memory as a tenth of the daemon. */
async function tracingOf(env: CliContext['env'], version: string, log: Logger) {
  const to = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT
  if (!to || env.OTEL_SDK_DISABLED === 'true') return undefined
  if (!URL.canParse(to)) {
    log.warn('OTEL_EXPORTER_OTLP_ENDPOINT is not a URL: nothing is traced')
    return undefined
  }
  return (await import('../tracing.js')).startTracing({ env, version, log })
}

function makeFirstConfig(options: FirstConfigOptions): FirstConfig {
  try {
    return createFirstConfig(options)
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    const todo = 'start in a folder that can be written, or name a config with --config'
    throw new LatchkeyError(
      'output_failed',
      `${options.path} can't be created: ${refusalText(error)}: ${todo}`,
      {
        cause: error,
      },
    )
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

function changedParts(before: Config, after: Config): readonly string[] {
  return Object.entries(TAKEN_OVER).flatMap(([name, part]) =>
    isDeepStrictEqual(part(before), part(after)) ? [] : [name],
  )
}

/** All other settings. The daemon itself reports a changed policy, and `provider` is not used yet. */
function needingRestart(config: Config): object {
  const { path, endpoints, apiKeys, policy, products, sync, log, provider, database, ...rest } = config
  return { ...rest, database: { url: database.url, ...database.postgres } }
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

/** Resolves at the first signal; a second one ends the process at once. */
function onStopSignal(stop: () => void): void {
  const stopOnce = (): void => {
    process.off('SIGTERM', stopOnce)
    process.off('SIGINT', stopOnce)
    stop()
  }
  process.on('SIGTERM', stopOnce)
  process.on('SIGINT', stopOnce)
}
