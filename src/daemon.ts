import type { Logger } from 'pino'
import type { Config } from './config/types.js'
import { LatchkeyError } from './errors.js'
import type { AccessDeps } from './handlers/access-question.js'
import { startListeners } from './handlers/listeners.js'
import { createMetrics } from './handlers/metrics.js'
import type { Readiness } from './handlers/readyz.js'
import { createIngestQueue } from './ingest/queue.js'
import { createRefreshDue } from './ingest/refresh-due.js'
import { createReportWritten } from './ingest/report-written.js'
import { createBatchWriter } from './ingest/write-batch.js'
import { startSchedule } from './jobs/schedule.js'
import { openStore } from './store/store.js'

export interface DaemonDeps {
  /** Epoch milliseconds; the one place where the clock comes in. */
  readonly clock: () => number
  readonly log: Logger
}

export interface Daemon {
  readonly url: string
  readonly webhooksUrl: string
  readonly metricsUrl: string
  /** Takes over endpoints and API keys from a config read anew; all else needs a restart. */
  reload(config: Config): void
  /** Stops accepting, answers what is under way, and closes the store. May be called twice. */
  stop(): Promise<void>
  /** Resolves, with the error, once the store can't be trusted any more: the process should end. */
  readonly failure: Promise<unknown>
}

/**
 * Puts the parts together: the only place that knows them all.
 * @throws {LatchkeyError} `store_in_use`, `schema_too_new`; the system's own errors pass through
 */
export async function startDaemon(config: Config, { clock, log }: DaemonDeps): Promise<Daemon> {
  let current = config
  const store = await openStore(config.database.file, config.policy, clock)
  if (store.policyDiffers) {
    log.warn('the configured policy differs from the one in force, which stays: nothing was applied')
  }
  try {
    const metrics = createMetrics()
    let reportFailure: (error: unknown) => void = () => {}
    const failure = new Promise<unknown>((resolve) => {
      reportFailure = resolve
    })
    const queue = createIngestQueue({
      writeBatch: createBatchWriter({ db: store.writer, policy: store.policy, clock }),
      onWritten: createReportWritten({ log, count: metrics }),
      onBroken: reportFailure,
      log,
    })
    const listeners = await startListeners({
      addresses: config.server,
      endpointNamed: (name) => current.endpoints.find((endpoint) => endpoint.name === name),
      environments: () => current.endpoints.map(({ environment }) => environment),
      apiKeys: () => current.apiKeys,
      ingest: queue.ingest,
      readAccess: orUnavailable(store.readAccess, log),
      isWriterAlive: queue.isAlive,
      readiness: () => readinessOf(queue.isAlive(), store),
      clock,
      metrics,
      log,
    })
    const schedule = startSchedule({ refreshDue: createRefreshDue({ db: store.writer, clock }), log })

    async function stop(): Promise<void> {
      await listeners.stop()
      await queue.drain()
      await schedule.stop()
      await store.close()
    }
    let stopped: Promise<void> | null = null
    return {
      url: listeners.url,
      webhooksUrl: listeners.webhooksUrl,
      metricsUrl: listeners.metricsUrl,
      reload: (next) => {
        current = next
      },
      stop: () => {
        stopped ??= stop()
        return stopped
      },
      failure,
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** A store that can't be read must never look like a customer without access. */
function orUnavailable(readAccess: AccessDeps['readAccess'], log: Logger): AccessDeps['readAccess'] {
  return async (question) => {
    try {
      return await readAccess(question)
    } catch (error) {
      log.error({ err: error }, 'the store could not be read')
      throw new LatchkeyError('store_unavailable', 'The store can not be read now.', { cause: error })
    }
  }
}

async function readinessOf(
  isWriterAlive: boolean,
  store: { canWrite(): Promise<boolean>; readonly policyDiffers: boolean },
): Promise<Readiness> {
  if (!isWriterAlive) return { ready: false, notes: ['The writer has stopped.'] }
  if (!(await store.canWrite())) return { ready: false, notes: ['The store can not be written now.'] }
  return { ready: true, notes: store.policyDiffers ? ['The configured policy is not the one in force.'] : [] }
}
