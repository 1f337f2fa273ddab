import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { Config } from './config/schema.js'
import { createKeyUses } from './daemon/key-uses.js'
import { atMostOnceASecond, logStoreState, readinessOf, usableSocket } from './daemon/notes.js'
import { type CurrentConfig, createCurrentConfig, questionDeps } from './daemon/questions.js'
import { startSchedules } from './daemon/schedules.js'
import { startWriter } from './daemon/start-writer.js'
import { createStartedParts, type StartedParts } from './daemon/started-parts.js'
import { nullIfAway, statusOf } from './daemon/status.js'
import { createSyncService, type SyncService } from './daemon/sync.js'
import { examineApart } from './doctor/examine.js'
import { ok, warn } from './doctor/finding.js'
import { LatchkeyError } from './errors.js'
import { socketFileOf } from './handlers/api-key.js'
import { bytesBeingRead } from './handlers/body.js'
import { createChangeStream } from './handlers/change-stream.js'
import type { ControlDeps } from './handlers/control.js'
import type { Readiness } from './handlers/health.js'
import { createKeptAnswers, forgetting } from './handlers/kept-answers.js'
import { assertCanListen, type Listeners, startListeners } from './handlers/listeners.js'
import type { Receive } from './handlers/routes.js'
import { syncStateJson } from './handlers/sync.js'
import { importLines } from './history/import.js'
import { createIngestQueue } from './ingest/queue.js'
import { reportRemarks } from './ingest/remarks.js'
import { addDaemonMetrics, createMetrics, type RequestMetrics, readRefusals } from './operations/metrics.js'
import { every } from './operations/schedule.js'
import { createPerformAct } from './people/acts.js'
import { createErase } from './people/erase.js'
import { erasureListOf } from './people/erasure-list.js'
import { startComparison } from './recompute/compare.js'
import { createRecomputeJobs, type RecomputeJobs, type RecomputeJobsDeps } from './recompute/jobs.js'
import { type AccessQuery, readAccess } from './store/access.js'
import { changeLogEpoch, formatCursor, latestCursor, readChangePage } from './store/changes.js'
import { isStoreBroken } from './store/engine.js'
import { loadUnfinishedErasures } from './store/erasures.js'
import type { Db } from './store/schema.js'
import { policyInForce } from './store/settings.js'
import { ensurePrivateFile } from './store/sqlite/file.js'
import { openStore } from './store/sqlite/store.js'
import { previewCalls } from './sync/preview-calls.js'
import type { Tracing } from './tracing.js'

const POLICY_DIFFERS =
  'the configured policy differs from the one in force, which stays: see `latchkey policy diff`'

const STOPPED = new LatchkeyError('not_stored', 'Latchkey has stopped. Send it again.')

const KEY_USES_LOST = 'could not store when API keys were used'

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
  /** If omitted, nothing is traced. */
  readonly tracing?: Tracing | undefined
}

export interface Daemon {
  readonly url: string
  readonly webhooksUrl: string
  readonly metricsUrl: string
  /** Takes a delivery that another server has accepted. */
  readonly receive: Receive
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

/** What a daemon is put together from, in that order. */
interface Parts extends Omit<DaemonDeps, 'control'> {
  readonly config: Config
  readonly control: NonNullable<DaemonDeps['control']>
  readonly startedAt: number
  readonly started: StartedParts
  readonly fail: (error: unknown) => void
  readonly current: CurrentConfig
  readonly store: Awaited<ReturnType<typeof openServed>>
  readonly metrics: RequestMetrics
  readonly changeStream: ReturnType<typeof createChangeStream>
  /** Called after each change that may concern roles, groups or streams. */
  readonly wake: () => void
  readonly intake: ReturnType<typeof startIntake>
  readonly recomputing: RecomputeJobs
  readonly changing: ReturnType<typeof createChanging>
  readonly following: SyncService
  readonly keyUses: ReturnType<typeof createKeyUses>
  readonly readiness: () => Promise<Readiness>
}

type Opened = Omit<Parts, 'intake' | 'recomputing' | 'changing' | 'following' | 'keyUses' | 'readiness'>

async function assemble(config: Config, deps: DaemonDeps, started: StartedParts): Promise<Daemon> {
  const { clock, log, tracing, control = NO_CONTROL } = deps
  const { promise: failure, resolve: fail } = Promise.withResolvers<unknown>()
  const current = createCurrentConfig(config)
  const given = { ...deps, config, control, startedAt: clock(), started, fail, current }
  const store = await openServed(given)
  started.add('store', store.close)
  if (tracing !== undefined) started.add('tracing', tracing.stop)
  const policy = watchPolicy(store.reader, current, log)
  await policy.warnIfDiffers()

  const metrics = createMetrics(bytesBeingRead)
  metrics.begin(current.endpointNames())
  const changeStream = createChangeStream({
    readChangePage: (query) => readChangePage(store.reader, query),
    readCursor: async () =>
      formatCursor(await changeLogEpoch(store.reader), await latestCursor(store.reader)),
    catalog: current.catalog,
    log,
  })
  started.add('changeStream', changeStream.stop)
  const wakes = [changeStream.wake]
  const wake = (): void => {
    for (const one of wakes) one()
  }
  const opened = { ...given, store, metrics, changeStream, wake }
  const intake = startIntake(opened)
  // The writer may have ended before the queue existed.
  void failure.then(intake.queue.fail)
  const recomputing = startRecomputing({ ...opened, intake })
  await noteOpened(opened)
  const changing = createChanging({ ...opened, intake })
  const following = await startFollowing({ ...opened, changing })
  wakes.push(following.wake)
  takeTurns({ ...opened, intake, recomputing, changing, following })

  const keyUses = createKeyUses({
    db: store.reader,
    writer: store.writer,
    apiKeys: () => current.now().apiKeys,
    clock,
  })
  started.add('keyUses', () =>
    keyUses.save().catch((error: unknown) => log.error({ err: error }, KEY_USES_LOST)),
  )
  const canWrite = atMostOnceASecond(store.writer.canWrite)
  const readiness = () =>
    readinessOf(intake.queue.isAlive, canWrite, policy.differs, following.outages, current.note())
  const parts: Parts = { ...opened, intake, recomputing, changing, following, keyUses, readiness }
  const { url, webhooksUrl, metricsUrl, receive } = await serveRoutes(parts)
  addDaemonMetrics(metrics.registry, async () => ({
    version: control.version,
    isReady: await readiness().then(
      ({ ready }) => ready,
      () => false,
    ),
    isConfigOutdated: current.note() !== null,
    apiKeys: current.now().apiKeys,
    endpoints: current.now().endpoints,
  }))
  startSchedules({
    ...opened,
    erasing: changing.erasing,
    saveKeyUses: keyUses.save,
    onChanged: wake,
    endpointNames: current.endpointNames,
    registry: metrics.registry,
  })
  await recomputing.resume()
  return {
    url,
    webhooksUrl,
    metricsUrl,
    receive,
    async reload(next) {
      current.replace(next)
      metrics.begin(current.endpointNames())
      intake.keptAnswers.forgetAll()
      changeStream.wake()
      await following.reload(next)
      return policy.warnIfDiffers().catch((error: unknown) => {
        log.error({ err: error }, 'could not read the policy in force')
        return false
      })
    },
    noteConfig: current.setNote,
    stop: started.stop,
    failure,
  }
}

/** `shared`: what several daemons on one store settle among them; null: there is only this one. */
async function openServed({ config, clock, log, fail }: Pick<Parts, 'config' | 'clock' | 'log' | 'fail'>) {
  const { file, postgres } = config.database
  if (postgres !== undefined) {
    const { openSharedStore } = await import('./daemon/shared-store.js')
    const shared = await openSharedStore(postgres, config, { clock, log, fail })
    return { ...shared, shared }
  }
  if (!existsSync(file)) await assertCanListen(config.server)
  const openWriter = (own: string) => startWriter({ file: own, clock, onEnded: fail })
  return { ...(await openStore(file, config.policy, openWriter, fail)), shared: null }
}

function watchPolicy(db: Db, current: CurrentConfig, log: Logger) {
  const differs = async () => !isDeepStrictEqual(await policyInForce(db), current.now().policy)
  return {
    differs,
    async warnIfDiffers() {
      const doesDiffer = await differs()
      if (doesDiffer) log.warn(POLICY_DIFFERS)
      return doesDiffer
    },
  }
}

/** The way in: the queue of deliveries and acts, and the answers in memory that they outdate. */
function startIntake(opened: Opened) {
  const { store, metrics, wake, fail, tracing, log, started } = opened
  const { writeBatch } = store.writer
  // Another process may outdate an answer unnoticed.
  const keptAnswers = store.shared === null ? createKeptAnswers() : createKeptAnswers(0)
  const queue = createIngestQueue({
    writeBatch: forgetting(keptAnswers, tracing?.ofBatches(writeBatch) ?? writeBatch),
    // A second one would only wait for PostgreSQL's lock, and be half as large.
    underWayAtMost: store.shared === null ? 2 : 1,
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
  return {
    queue,
    keptAnswers,
    ingest,
    /** Another server, which goes on while this one stops, may still take deliveries in. */
    accept: ((delivery) => (isStopping ? Promise.reject(STOPPED) : ingest(delivery))) as typeof ingest,
  }
}
function startRecomputing(parts: Opened & Pick<Parts, 'intake'>) {
  const { config, store, current, intake, wake, fail, clock, log, started } = parts
  const alone: RecomputeJobsDeps['alone'] = store.shared?.alone ?? ((work) => work(store.writer.recompute))
  const recomputing = createRecomputeJobs({
    compare: (plan, options) =>
      startComparison(config.database, plan, { ...options, clock }).catch((error: unknown) => {
        if (isStoreBroken(error)) fail(error)
        throw error
      }),
    alone: (work) =>
      alone((apply) =>
        work((...call) => intake.keptAnswers.clearedDuring(() => apply(...call)).finally(wake)),
      ),
    db: store.reader,
    writeSync: store.writer.writeSync,
    isRecomputing: async () => (await store.shared?.isRecomputing()) ?? false,
    endpoints: current.endpointEnvironments,
    previewCalls: (customers) => previewCalls(store.reader, current.now().products, customers),
    clock,
    log,
  })
  started.add('recomputing', recomputing.close)
  return recomputing
}

/** Logs what is unusual about an opened store, and erases again whom a backup brought back. */
async function noteOpened({ store, config, clock, log }: Opened): Promise<void> {
  logStoreState(store, config, clock(), log)
  // Even an empty list tells a later start that there was a database.
  if (store.isNew) ensurePrivateFile(erasureListOf(store.file))
  const again = await store.writer.applyErasureList()
  if (again === 0) return
  log.warn(
    { count: again },
    'erased customers again: the list of erasures has them, and the database had their data',
  )
}

/** Changes by hand, and erasures. */
function createChanging({ store, intake, tracing, wake, clock }: Opened & Pick<Parts, 'intake'>) {
  const { ingest } = intake
  const db = store.reader
  const read = (query: AccessQuery) => readAccess(db, clock, query)
  const tracedRead = tracing?.ofReads('read access', read) ?? read
  const erasing = {
    db,
    write: ingest,
    // It also removes their platform accounts.
    finish: () => store.writer.finishErasures().finally(wake),
  }
  return {
    erasing,
    readAccess: tracedRead,
    performAct: createPerformAct({ db, write: ingest, readAccess: tracedRead, clock }),
  }
}
async function startFollowing(parts: Opened & Pick<Parts, 'changing'>) {
  const {
    config,
    store,
    changing,
    current,
    metrics,
    clock,
    random = Math.random,
    tracing,
    log,
    started,
  } = parts
  const following = await createSyncService({
    config,
    db: store.reader,
    writeSync: store.shared?.writeSync ?? store.writer.writeSync,
    ...(store.shared !== null && { isLeader: store.shared.isLeader }),
    readAccess: changing.readAccess,
    performAct: changing.performAct,
    catalog: current.catalog,
    registry: metrics.registry,
    clock,
    random,
    tracing,
    log,
  })
  started.add('following', following.stop)
  started.add('webhookTests', following.endTests)
  return following
}

/** Has several instances take turns at what one of them does at a time. */
function takeTurns(parts: Omit<Parts, 'keyUses' | 'readiness'>): void {
  const { store, following, recomputing, changing, wake, log, started } = parts
  const { shared } = store
  if (shared === null) return
  /** Continues what an instance has left that ended in the middle; also what another is doing, which does no harm. */
  const takeOver = async () => {
    if (!shared.isLeader()) return
    await recomputing.resume()
    if ((await loadUnfinishedErasures(store.reader)).length > 0) await changing.erasing.finish()
  }
  const onLeaderChange = () => following.onLeaderChange().then(takeOver)
  started.add('turns', shared.takeTurns({ onLeaderChange, wake }))
  const failed = 'could not continue a job that another instance left unfinished'
  started.add('takingOver', every(TAKEN_OVER_WITHIN_MS, log, { run: takeOver, failed }).stop)
}

/** Opens the addresses and the local socket, with every route. */
async function serveRoutes(parts: Parts): Promise<Listeners> {
  const { config, control, startedAt, started, current, store, metrics, changeStream, clock, log, tracing } =
    parts
  const { intake, recomputing, changing, following, keyUses, readiness } = parts
  const socketFile = await usableSocket(socketFileOf(config.database.file), log)
  let listeners: Listeners | null = null
  const status = () =>
    statusOf({
      version: control.version,
      startedAt,
      config: current.now(),
      readiness,
      listeners,
      socketFile,
      store,
      queue: intake.queue,
      sync: following.control,
      recomputing,
      now: clock(),
    })
  const examine = async (thorough: boolean) =>
    examineApart({
      config: current.now(),
      thorough,
      now: clock(),
      daemon: {
        finding: daemonFinding(startedAt, current.note()),
        facts: await readRefusals(metrics.registry),
        isServed: true,
        isRebuilding: (await nullIfAway(recomputing.last('rebuild')))?.outcome.state === 'running',
      },
      sync: await nullIfAway(following.control.status().then(syncStateJson)),
    })
  listeners = await startListeners({
    ...questionDeps(store.reader, config, current, {
      keptAnswers: intake.keptAnswers,
      comparisons: recomputing,
      replays: recomputing,
      sync: following.control,
      keys: keyUses.list,
      clock,
    }),
    readAccess: changing.readAccess,
    sync: following.control,
    addresses: config.server,
    socketFile,
    apiKeys: () => current.now().apiKeys,
    keyUsed: keyUses.note,
    ...(tracing && { traced: tracing.ofRequests }),
    ingest: intake.accept,
    changeStream,
    performAct: changing.performAct,
    erase: createErase(changing.erasing),
    rebuilds: recomputing,
    examine,
    importLines: (lines, { dryRun, ...rules }) =>
      importLines(lines, rules, {
        endpointNamed: current.endpointNamed,
        ingest: dryRun ? null : intake.ingest,
        clock,
      }),
    messenger: following.messenger,
    isWriterAlive: intake.queue.isAlive,
    readiness,
    control: { ...control, status },
    metrics,
    log,
  })
  started.add('listeners', listeners.stop)
  return listeners
}

function daemonFinding(startedAt: number, configNote: string | null) {
  const since = `running since ${new Date(startedAt).toISOString()}`
  return configNote === null ? ok('daemon', since) : warn('daemon', `${since}; ${configNote}`, null)
}
