import type { Logger } from 'pino'
import type { Config } from './config/types.js'
import { LatchkeyError } from './errors.js'
import type { CustomerQuestions } from './handlers/customer-questions.js'
import { startListeners } from './handlers/listeners.js'
import { socketFileOf } from './handlers/local-access.js'
import { createMetrics } from './handlers/metrics.js'
import type { Readiness } from './handlers/readyz.js'
import { createPerformAct } from './ingest/manual-acts.js'
import { createIngestQueue } from './ingest/queue.js'
import { createRebuildJobs } from './ingest/rebuild-jobs.js'
import { createReportRemarks } from './ingest/report-remarks.js'
import { startWriter } from './ingest/start-writer.js'
import { startSchedule } from './jobs/schedule.js'
import type { CustomerReaders } from './store/customer-readers.js'
import { loadManualEvent } from './store/manual-events.js'
import { isSamePolicy, policyFingerprint, policyInForce } from './store/policy.js'
import { openStore } from './store/store.js'

/** The least that any supported system takes, less its final NUL. */
const MAX_SOCKET_PATH_BYTES = 103

const POLICY_DIFFERS =
  'the configured policy differs from the one in force, which stays: see `latchkey policy diff`'

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
  const store = await openStore(config.database.file, config.policy, clock, (file) =>
    startWriter(file, clock),
  )
  try {
    const policyDiffers = async () => !isSamePolicy(await policyInForce(store.reader), current.policy)
    const warnIfPolicyDiffers = async () => {
      if (await policyDiffers()) log.warn(POLICY_DIFFERS)
    }
    await warnIfPolicyDiffers()
    const metrics = createMetrics()
    let reportFailure: (error: unknown) => void = () => {}
    const failure = new Promise<unknown>((resolve) => {
      reportFailure = resolve
    })
    const { writer } = store
    const queue = createIngestQueue({
      writeBatch: async (deliveries) => {
        store.assertInPlace()
        return writer.writeBatch(deliveries)
      },
      onWritten: createReportRemarks({ log, count: metrics }),
      onBroken: reportFailure,
      log,
    })
    const rebuilds = createRebuildJobs({ rebuild: writer.rebuild, log })
    const readAccess = orUnavailable(store.readAccess, log)
    const listeners = await startListeners({
      addresses: config.server,
      socketFile: usableSocket(socketFileOf(config.database.file), log),
      endpointNamed: (name) => current.endpoints.find((endpoint) => endpoint.name === name),
      environments: () => current.endpoints.map(({ environment }) => environment),
      apiKeys: () => current.apiKeys,
      ingest: queue.ingest,
      readAccess,
      performAct: createPerformAct({
        write: queue.ingest,
        findAct: (environment, eventId) => loadManualEvent(store.reader, environment, eventId),
        readAccess,
        clock,
      }),
      customers: customerQuestions(store.customerReaders(config.identity.ref), log),
      readExplanation: orUnavailable(store.readExplanation, log),
      rebuilds: {
        rebuilds,
        configuredPolicy: () => ({
          policy: current.policy,
          fingerprint: policyFingerprint(current.policy),
        }),
        policyInForce: () => policyInForce(store.reader),
      },
      isWriterAlive: queue.isAlive,
      readiness: () => readinessOf(queue.isAlive(), writer.canWrite, policyDiffers),
      clock,
      metrics,
      log,
    })
    const schedule = startSchedule({ refreshDue: writer.refreshDue, log })

    async function stop(): Promise<void> {
      await listeners.stop()
      await queue.drain()
      await schedule.stop()
      await rebuilds.stop()
      await store.close()
    }
    let stopped: Promise<void> | null = null
    return {
      url: listeners.url,
      webhooksUrl: listeners.webhooksUrl,
      metricsUrl: listeners.metricsUrl,
      reload: (next) => {
        current = next
        void warnIfPolicyDiffers().catch((error: unknown) => {
          log.error({ err: error }, 'the policy in force could not be read')
        })
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

/** A socket's path has few bytes on every system; a longer one would stop the start for what few need. */
function usableSocket(file: string, log: Logger): string | null {
  if (Buffer.byteLength(file) <= MAX_SOCKET_PATH_BYTES) return file
  log.warn({ file }, 'the path is too long for a local socket: commands that change something need --url')
  return null
}

function customerQuestions(readers: CustomerReaders, log: Logger): CustomerQuestions {
  return {
    readAccesses: orUnavailable(readers.readAccesses, log),
    findByReference: orUnavailable(readers.findByReference, log),
    findByReferences: orUnavailable(readers.findByReferences, log),
    findByDetail: orUnavailable(readers.findByDetail, log),
    readCustomer: orUnavailable(readers.readCustomer, log),
    readProductCustomers: orUnavailable(readers.readProductCustomers, log),
  }
}

/** A store that can't be read must never look like a customer without access. */
function orUnavailable<Question, Answer>(
  read: (question: Question) => Promise<Answer>,
  log: Logger,
): (question: Question) => Promise<Answer> {
  return async (question) => {
    try {
      return await read(question)
    } catch (error) {
      log.error({ err: error }, 'the store could not be read')
      throw new LatchkeyError('store_unavailable', 'The store can not be read now.', { cause: error })
    }
  }
}

async function readinessOf(
  isWriterAlive: boolean,
  canWrite: () => Promise<boolean>,
  policyDiffers: () => Promise<boolean>,
): Promise<Readiness> {
  if (!isWriterAlive) return { ready: false, notes: ['The writer has stopped.'] }
  if (!(await canWrite())) return { ready: false, notes: ['The store can not be written now.'] }
  return {
    ready: true,
    notes: (await policyDiffers()) ? ['The configured policy is not the one in force.'] : [],
  }
}
