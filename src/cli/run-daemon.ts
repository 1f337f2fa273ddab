import { existsSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import type { Logger } from 'pino'
import { loadConfig } from '../config/load.js'
import { locateConfig } from '../config/locate.js'
import { startConfigured } from '../daemon/configured.js'
import { LatchkeyError } from '../errors.js'
import { terminalLines } from '../log.js'
import { packageVersion } from '../package-file.js'
import type { CliContext, SharedOptions } from './context.js'
import { makeFirstConfig } from './init.js'

/** Only the daemon's user can read the files that it creates. */
const PRIVATE = 0o077

/**
 * Collects a heap when it has doubled since the last time, in every thread. (By default it would grow fourfold where
 * there is memory. Under full load 260 MB resident instead of 320, for 3 % of the CPU time; at half load 235, for 10
 * %.)
 */
const COLLECT_SOONER = '--heap-growing-percent=100'

const STORE_FAILED =
  'The store has failed: nothing more was acknowledged. Run `latchkey doctor` to see what is wrong; ' +
  'if the database is damaged, restore a backup with `latchkey restore`.'

/** Serves until a signal stops it, or the store fails. */
export async function runDaemon(options: SharedOptions, context: CliContext): Promise<void> {
  process.umask(PRIVATE)
  setFlagsFromString(COLLECT_SOONER)
  let running: Awaited<ReturnType<typeof startConfigured>> | null = null
  // Installed first, since SIGHUP without a handler ends the process; it does nothing until the daemon runs.
  process.on('SIGHUP', () => void running?.reload().catch(() => {}))
  const { path, named } = locateConfig({ option: options.config, env: context.env, folder: context.folder })
  if (!named && !existsSync(path)) {
    const { isTerminal, out, err } = context
    const { created, next } = makeFirstConfig(path, context)
    // If standard output is not a terminal, its reader expects log lines.
    const write = isTerminal ? out : err
    write(`${created}\n${next}`)
  }
  const { promise: stopped, resolve } = Promise.withResolvers<null>()
  const stop = () => resolve(null)
  running = await startConfigured({
    load: () => loadConfig({ path, env: context.env }),
    logTo: context.isTerminal ? await terminalLines() : undefined,
    clock: context.now,
    version: packageVersion(),
    startTracing: (log) => tracingOf(context.env, log),
    stop,
  })
  const { daemon, log } = running
  onStopSignal(stop)
  // Last: a reader of the pid may send a signal at once.
  const { url, webhooksUrl, metricsUrl } = daemon
  log.info({ url, webhooksUrl, metricsUrl, pid: process.pid }, `serving on ${url}`)

  const failed = await Promise.race([stopped, daemon.failure.then((error) => ({ error }))])
  log.info('stopping')
  await daemon.stop()
  if (failed !== null) {
    log.fatal({ err: failed.error }, 'the store has failed')
    throw new LatchkeyError('store_unavailable', STORE_FAILED, { cause: failed.error })
  }
  log.info('stopped')
}

/** Loaded only if it is used: the libraries take a fifth of a second. */
async function tracingOf(env: CliContext['env'], log: Logger) {
  const to = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT
  if (!to || env.OTEL_SDK_DISABLED === 'true') return undefined
  if (!URL.canParse(to)) {
    log.warn('OTEL_EXPORTER_OTLP_ENDPOINT is not a URL, so tracing is off: correct it and restart')
    return undefined
  }
  return (await import('../tracing.js')).startTracing({ env, version: packageVersion(), log })
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
