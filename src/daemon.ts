import { existsSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { policyFrom } from './config/policy.js'
import type { Config } from './config/schema.js'
import { createKeyUses } from './daemon/key-uses.js'
import { atMostOnceASecond, logStoreState, readinessOf, usableSocket } from './daemon/notes.js'
import { createOfflineSync } from './daemon/offline-sync.js'
import { questionsOf } from './daemon/questions.js'
import { startWriter } from './daemon/start-writer.js'
import { createStartedParts } from './daemon/started-parts.js'
import { nullIfAway, statusOf } from './daemon/status.js'
import { createSyncService, type SyncServiceDeps } from './daemon/sync.js'
import { startPrivacySchedule, watchStore } from './daemon/watch-store.js'
import { openWriter } from './daemon/writer.js'
import { examineApart } from './doctor/examine.js'
import { ok, warn } from './doctor/finding.js'
import { answerFor, longerLasting } from './entitlements/entitlement.js'
import { catalogOf } from './entitlements/features.js'
import { LatchkeyError } from './errors.js'
import { socketFileOf } from './handlers/api-key.js'
import { bytesBeingRead } from './handlers/body.js'
import { createChangeStream } from './handlers/change-stream.js'
import type { ControlDeps } from './handlers/control.js'
import { createKeptAnswers, forgetting, type KeptAnswers } from './handlers/kept-answers.js'
import { assertCanListen, type Listeners, startListeners } from './handlers/listeners.js'
import type { Receive } from './handlers/routes.js'
import { syncStateJson } from './handlers/sync.js'
import { importLines } from './history/import.js'
import { MANUAL_ENDPOINT } from './ingest/prepare.js'
import { createIngestQueue } from './ingest/queue.js'
import { reportRemarks } from './ingest/remarks.js'
import { addDaemonMetrics, createMetrics, readRefusals } from './operations/metrics.js'
import { every } from './operations/schedule.js'
import { startBackup, startScheduledBackups } from './operations/scheduled-backups.js'
import { createPerformAct } from './people/acts.js'
import { createErase, eraseDeleted } from './people/erase.js'
import { erasureListOf } from './people/erasure-list.js'
import { startComparison } from './recompute/compare.js'
import { createRecomputeJobs, type RecomputeJobsDeps } from './recompute/jobs.js'
import { readKnownCustomer } from './store/account.js'
import { isStoreBroken } from './store/engine.js'
import { loadErasure, loadUnfinishedErasures } from './store/erasures.js'
import { loadManualEvent } from './store/events.js'
import { MESSAGES_KEPT_MS } from './store/messages.js'
import { readJob } from './store/recompute.js'
import { policyFingerprint, policyInForce } from './store/settings.js'
import { ensurePrivateFile } from './store/sqlite/file.js'
import { openStore } from './store/sqlite/store.js'
import { previewCalls } from './sync/preview-calls.js'
import type { Tracing } from './tracing.js'

const POLICY_DIFFERS =
  'the configured policy differs from the one in force, which stays: see `latchkey policy diff`'

const STOPPED = new LatchkeyError('not_stored', 'Latchkey has stopped. Send it again.')

const KEY_USES_LOST = 'could not store when API keys were used'

function daemonFinding(startedAt: number, configNote: string | null) {
  const since = `running since ${new Date(startedAt).toISOString()}`
  return configNote === null ? ok('daemon', since) : warn('daemon', `${since}; ${configNote}`, null)
}

/** How often the instance that follows access looks for what another has left unfinished. */
const TAKEN_OVER_WITHIN_MS = 5_000

const NO_CONTROL = {
  version: 'unknown',
  reload: () => Promise.reject(new Error('this daemon cannot reload its config')),
  stop: () => {},
}

export interface DaemonDeps {
  /** Epoch milliseconds; the only source of time. */
  readonly clock: () => number
  /** From 0 up to 1; spreads retries. */
  readonly random?: () => number
  readonly log: Logger
  /** Reloads and stops the daemon. If omitted, it can't be reloaded or stopped over HTTP. */
  readonly control?: Pick<ControlDeps['control'], 'reload' | 'stop'> & { readonly version: string }
  /**
   * `this process`: for a command that finds no daemon. It opens no address, runs no schedules, calls no platform and
   * sends nothing.
   */
  readonly serves?: 'everybody' | 'this process'
  /** If omitted, nothing is traced. */
  readonly tracing?: Tracing | undefined
}

export interface Daemon {
  /** Empty, like the next two, if it serves this process alone. */
  readonly url: string
  readonly webhooksUrl: string
  readonly metricsUrl: string
  /** Takes a delivery that another server has accepted. */
  readonly receive: Receive
  /** An in-process connection to its API, with all rights. */
  connect(): Duplex
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
export async function startDaemon(
  config: Config,
  { clock, random = Math.random, log, serves = 'everybody', control = NO_CONTROL, tracing }: DaemonDeps,
): Promise<Daemon> {
  const isPrivate = serves === 'this process'
  const startedAt = clock()
  let current = config
  let catalog = catalogOf(config.products)
  let configNote: string | null = null
  const { promise: failure, resolve: fail } = Promise.withResolvers<unknown>()
  const { file, postgres } = config.database
  if (!isPrivate && postgres === undefined && !existsSync(file)) await assertCanListen(config.server)
  const shared =
    postgres === undefined
      ? null
      : await (await import('./daemon/shared-store.js')).openSharedStore(postgres, config, {
          clock,
          log,
          fail,
        })
  const store =
    shared ??
    (await openStore(
      file,
      config.policy,
      // Starting a thread takes longer than most commands.
      (own) => (isPrivate ? openWriter(own, clock) : startWriter({ file: own, clock, onEnded: fail })),
      fail,
    ))
  const started = createStartedParts()
  started.add('store', store.close)
  if (tracing !== undefined) started.add('tracing', tracing.stop)
  try {
    const policyDiffers = async () => !isDeepStrictEqual(await policyInForce(store.reader), current.policy)
    const warnIfPolicyDiffers = async () => {
      const differs = await policyDiffers()
      if (differs) log.warn(POLICY_DIFFERS)
      return differs
    }
    await warnIfPolicyDiffers()
    const metrics = createMetrics(bytesBeingRead)
    const { writer } = store
    // Another process may outdate an answer unnoticed.
    const keptAnswers = shared === null ? createKeptAnswers() : createKeptAnswers(0)
    const questions = questionsOf(store.reader, config, clock)
    const changeStream = createChangeStream({ ...questions, catalog: () => catalog, log })
    started.add('changeStream', changeStream.stop)
    /** Called after each change that may concern roles, groups or streams. */
    let wake = changeStream.wake
    const queue = createIngestQueue({
      writeBatch: forgetting(keptAnswers, tracing?.ofBatches(writer.writeBatch) ?? writer.writeBatch),
      // A second one would only wait for PostgreSQL's lock, and be half as large.
      underWayAtMost: shared === null ? 2 : 1,
      onWritten: (remarks) => {
        wake()
        reportRemarks(remarks, log, metrics)
      },
      onBroken: fail,
      log,
    })
    const ingest = tracing?.ofDeliveries(queue.ingest) ?? queue.ingest
    let isStopping = false
    started.add('queue', () => {
      isStopping = true
      return queue.drain()
    })
    // The writer may have ended before the queue existed.
    void failure.then(queue.fail)
    const clearingAnswers: KeptAnswers['clearedDuring'] = (change) =>
      keptAnswers.clearedDuring(change).finally(() => wake())
    const alone: RecomputeJobsDeps['alone'] = shared?.alone ?? ((work) => work(writer.recompute))
    const recomputing = createRecomputeJobs({
      compare: (plan, options) =>
        startComparison(config.database, plan, { ...options, clock }).catch((error: unknown) => {
          if (isStoreBroken(error)) fail(error)
          throw error
        }),
      alone: (work) => alone((apply) => work((...call) => clearingAnswers(() => apply(...call)))),
      db: store.reader,
      writeSync: writer.writeSync,
      isRecomputing: async () => (await shared?.isRecomputing()) ?? false,
      endpoints: () =>
        Object.fromEntries(current.endpoints.map(({ name, environment }) => [name, environment])),
      previewCalls: (customers) => previewCalls(store.reader, current.products, customers),
      clock,
      log,
    })
    started.add('recomputing', recomputing.close)
    const readAccess = tracing?.ofReads('read access', questions.readAccess) ?? questions.readAccess
    logStoreState(store, config, clock(), log)
    // Even an empty list tells a later start that there was a database.
    if (store.isNew) ensurePrivateFile(erasureListOf(store.file))
    const again = await writer.applyErasureList()
    if (again > 0)
      log.warn(
        { count: again },
        'erased customers again: the list of erasures has them, and the database had their data',
      )
    const erasing = {
      db: store.reader,
      write: ingest,
      // It also removes their platform accounts.
      finish: () => writer.finishErasures().finally(() => wake()),
    }
    const performAct = createPerformAct({
      write: ingest,
      findAct: (environment, eventId) => loadManualEvent(store.reader, environment, eventId),
      readAccess,
      blocksOn: async (environment, customerId) =>
        (await readKnownCustomer(store.reader, clock, { environment, customerId }))?.blocks ?? [],
      isErased: async (...whom) => (await loadErasure(store.reader, ...whom)) !== null,
      clock,
    })
    const syncDeps = {
      config,
      db: store.reader,
      writeSync: shared?.writeSync ?? writer.writeSync,
      ...(shared !== null && { isLeader: shared.isLeader }),
      readAccess,
      performAct,
      catalog: () => catalog,
      registry: metrics.registry,
      clock,
      random,
      tracing,
      log,
    } satisfies SyncServiceDeps
    const following = isPrivate ? createOfflineSync(syncDeps) : await createSyncService(syncDeps)
    wake = () => {
      following.wake()
      changeStream.wake()
    }
    started.add('following', following.stop)
    started.add('webhookTests', following.endTests)
    /** Continues what an instance has left that ended in the middle; also what another is doing, which does no harm. */
    const takeOver = async () => {
      if (!shared?.isLeader()) return
      await recomputing.resume()
      if ((await loadUnfinishedErasures(store.reader)).length > 0) await erasing.finish()
    }
    if (shared !== null && !isPrivate) {
      const onLeaderChange = () => following.onLeaderChange().then(takeOver)
      started.add('turns', shared.takeTurns({ onLeaderChange, wake: () => wake() }))
      const failed = 'could not continue what another instance has left'
      started.add('takingOver', every(TAKEN_OVER_WITHIN_MS, log, { run: takeOver, failed }).stop)
    }
    const keyUses = createKeyUses({ db: store.reader, writer, apiKeys: () => current.apiKeys, clock })
    started.add('keyUses', () =>
      keyUses.save().catch((error: unknown) => log.error({ err: error }, KEY_USES_LOST)),
    )
    const endpointNamed = (name: string) => current.endpoints.find((endpoint) => endpoint.name === name)
    const endpointNames = () => current.endpoints.map(({ name }) => name)
    const socketFile = isPrivate ? null : await usableSocket(socketFileOf(file), log)
    const canWrite = atMostOnceASecond(writer.canWrite)
    const readiness = () => readinessOf(queue.isAlive, canWrite, policyDiffers, following.outages, configNote)
    let listeners: Listeners | null = null
    const status = () =>
      statusOf({
        version: control.version,
        startedAt,
        config: current,
        readiness,
        listeners,
        socketFile,
        store,
        queue,
        sync: following.questions,
        recomputing,
        now: clock(),
      })
    listeners = await startListeners({
      addresses: config.server,
      isPrivate,
      socketFile,
      endpointNamed,
      endpointNames: () => [...endpointNames(), MANUAL_ENDPOINT],
      environments: () => current.endpoints.map(({ environment }) => environment),
      apiKeys: () => current.apiKeys,
      keyUsed: keyUses.note,
      ...(tracing && { traced: tracing.ofRequests }),
      // Another server, which goes on, may still take deliveries in.
      ingest: (delivery) => (isStopping ? Promise.reject(STOPPED) : ingest(delivery)),
      keptAnswers,
      catalog: () => catalog,
      changeStream,
      answerFor,
      longerLasting,
      performAct,
      erase: createErase(erasing),
      ...questions,
      readAccess,
      rebuilds: {
        rebuilds: recomputing,
        configuredPolicy: () => ({
          policy: current.policy,
          fingerprint: policyFingerprint(current.policy),
        }),
        policyInForce: () => policyInForce(store.reader),
        policyIn: policyFrom,
        unfinishedAt: async () => {
          const job = await readJob(store.reader)
          if (job === 'newer') return 0
          return job?.endpoints === null ? job.reached : null
        },
      },
      examine: async (thorough) =>
        examineApart({
          config: current,
          thorough,
          now: clock(),
          daemon: {
            finding: daemonFinding(startedAt, configNote),
            facts: await readRefusals(metrics.registry),
            isServed: true,
            isRebuilding: (await nullIfAway(recomputing.last('rebuild')))?.outcome.state === 'running',
          },
          sync: await nullIfAway(following.questions.status().then(syncStateJson)),
        }),
      importLines: (lines, { dryRun, ...rules }) =>
        importLines(lines, rules, { endpointNamed, ingest: dryRun ? null : ingest, clock }),
      replays: recomputing,
      messenger: following.messenger,
      sync: following.questions,
      isWriterAlive: queue.isAlive,
      readiness,
      control: { ...control, status, keys: keyUses.list },
      clock,
      metrics,
      log,
    })
    started.add('listeners', listeners.stop)
    const daemon: Daemon = {
      url: listeners.url,
      webhooksUrl: listeners.webhooksUrl,
      metricsUrl: listeners.metricsUrl,
      receive: listeners.receive,
      connect: listeners.connect,
      reload: async (next) => {
        current = next
        catalog = catalogOf(next.products)
        keptAnswers.forgetAll()
        changeStream.wake()
        await following.reload(next)
        return warnIfPolicyDiffers().catch((error: unknown) => {
          log.error({ err: error }, 'could not read the policy in force')
          return false
        })
      },
      noteConfig: (note) => {
        configNote = note
      },
      stop: started.stop,
      failure,
    }
    if (isPrivate) return daemon
    addDaemonMetrics(metrics.registry, async () => ({
      version: control.version,
      isReady: await readiness().then(
        ({ ready }) => ready,
        () => false,
      ),
      isConfigOutdated: configNote !== null,
      apiKeys: current.apiKeys,
      endpoints: current.endpoints,
    }))
    if (config.backup !== null && postgres === undefined) {
      const backups = startScheduledBackups({
        ...config.backup,
        startBackup: (target) => startBackup(file, target),
        registry: metrics.registry,
        clock,
        log,
      })
      started.add('backups', backups.stop)
    }
    const schedule = watchStore({
      db: store.reader,
      readBytes: store.bytes,
      refreshDue: writer.refreshDue,
      saveKeyUses: keyUses.save,
      onChanged: () => wake(),
      endpointNames,
      registry: metrics.registry,
      clock,
      log,
    })
    started.add('schedule', schedule.stop)
    const privacySchedule = startPrivacySchedule({
      finishErasures: erasing.finish,
      eraseDeleted: config.erasure.onCustomerDeleted ? () => eraseDeleted(erasing) : null,
      dropBodies: writer.dropBodies,
      dropMessages: () => writer.writeSync('expireMessages', clock() - MESSAGES_KEPT_MS),
      bodiesAfterMs: config.retention?.bodiesAfterMs ?? null,
      clock,
      log,
    })
    started.add('privacySchedule', privacySchedule.stop)
    await recomputing.resume()
    return daemon
  } catch (error) {
    await started.stop().catch((failed: unknown) => {
      log.error({ err: failed }, 'some parts of the daemon did not stop')
    })
    throw error
  }
}
