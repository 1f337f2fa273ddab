import type { Config } from './config/schema.js'
import { type DaemonDeps, openParts } from './daemon/open.js'
import { startParts } from './daemon/parts.js'
import { startSchedules } from './daemon/schedules.js'
import { serveRoutes } from './daemon/serve.js'
import { createStartedParts, type StartedParts } from './daemon/started-parts.js'
import type { Listeners } from './handlers/listeners.js'

export interface Daemon extends Pick<Listeners, 'url' | 'webhooksUrl' | 'metricsUrl' | 'receive'> {
  /**
   * Applies endpoints, API keys, products and sync of a config that was read again; the rest needs a restart.
   * Returns whether its policy differs from the one in force.
   */
  reload(config: Config): Promise<boolean>
  /** Makes `/readyz` say how the config file differs from the running config; null: it does not. */
  noteConfig(note: string | null): void
  /** Stops accepting, answers requests in progress, and closes the store. May be called twice. */
  stop(): Promise<void>
  /** Resolves with the error once the store can't be trusted any more: the process should end. */
  readonly failure: Promise<unknown>
}

/**
 * Assembles the daemon: the only place that knows all its parts. If it throws, it leaves nothing open.
 * @throws {LatchkeyError} `store_in_use`, `schema_too_new`; the system's own errors pass through
 */
export async function startDaemon(config: Config, deps: DaemonDeps): Promise<Daemon> {
  const started = createStartedParts()
  try {
    return await assemble(config, deps, started)
  } catch (error) {
    await started.stop().catch((failed: unknown) => {
      deps.log.error({ err: failed }, 'some parts of the daemon did not stop')
    })
    throw error
  }
}

async function assemble(config: Config, deps: DaemonDeps, started: StartedParts): Promise<Daemon> {
  const parts = await startParts(await openParts(config, deps, started))
  const { current, metrics, keptAnswers, changeStream, following, recomputing, backfilling, failure, log } =
    parts
  const { url, webhooksUrl, metricsUrl, receive } = await serveRoutes(parts)
  startSchedules(parts)
  await recomputing.resume()
  await backfilling.resume()
  return {
    url,
    webhooksUrl,
    metricsUrl,
    receive,
    async reload(next) {
      current.replace(next)
      metrics.begin(current.endpointNames())
      keptAnswers.forgetAll()
      changeStream.wake()
      await following.reload(next)
      return parts.warnIfPolicyDiffers().catch((error: unknown) => {
        log.error({ err: error }, 'could not read the policy in force')
        return false
      })
    },
    noteConfig: current.setNote,
    stop: started.stop,
    failure,
  }
}
