import { LatchkeyError } from '../errors.js'
import { createKeptAnswers, forgetting } from '../handlers/kept-answers.js'
import { lockNamesOf } from '../ingest/concerns.js'
import { createIngestQueue } from '../ingest/queue.js'
import { reportRemarks } from '../ingest/remarks.js'
import { every } from '../operations/schedule.js'
import { createPerformAct } from '../people/acts.js'
import { erasureListOf } from '../people/erasure-list.js'
import { createPreviewAct } from '../people/preview-act.js'
import { startComparison } from '../recompute/compare.js'
import { createRecomputeJobs, type RecomputeJobsDeps } from '../recompute/jobs.js'
import type { ProjectedCustomer } from '../recompute/run.js'
import { type AccessQuery, readAccess } from '../store/access.js'
import { isStoreBroken } from '../store/engine.js'
import { loadUnfinishedErasures } from '../store/erasures.js'
import { ensurePrivateFile } from '../store/sqlite/file.js'
import { previewCalls } from '../sync/preview-calls.js'
import { createApis, startBackfills } from './backfills.js'
import { createKeyUses } from './key-uses.js'
import { logStoreState } from './notes.js'
import type { Opened } from './open.js'
import { createSyncService } from './sync.js'

const STOPPED = new LatchkeyError('not_stored', 'Latchkey has stopped. Send it again.')

/** How often the instance that follows access looks for what another has left unfinished. */
const TAKEN_OVER_WITHIN_MS = 5_000

/** Everything that a daemon has before it listens. */
export type Parts = Awaited<ReturnType<typeof startParts>>

/** Starts what changes the store, and what follows the changes. */
export async function startParts(opened: Opened) {
  const { db, store, clock, log, started, current, wakes } = opened
  const intake = startIntake(opened)
  // The writer may have ended before the queue existed.
  void opened.failure.then(intake.queue.fail)
  const recomputing = startRecomputing({ ...opened, ...intake })
  await noteOpened(opened)
  const changing = createChanging({ ...opened, ...intake })
  const apis = createApis(opened)
  const backfilling = startBackfills({ ...opened, ...intake }, apis)
  const following = await createSyncService(opened, changing)
  wakes.push(following.wake)
  const parts = { ...opened, ...intake, ...changing, recomputing, apis, backfilling, following }
  takeTurns(parts)
  const keyUses = createKeyUses(db, store.writer, () => current.now().apiKeys, clock)
  started.add('keyUses', () =>
    keyUses
      .save()
      .catch((error: unknown) => log.error({ err: error }, 'could not store when API keys were used')),
  )
  return { ...parts, keyUses }
}

/** The way in: the queue of deliveries and acts, and the answers in memory that they outdate. */
function startIntake({ store, metrics, wake, fail, tracing, log, started }: Opened) {
  const { writeBatch } = store.writer
  // Another process may outdate an answer unnoticed.
  const keptAnswers = store.shared === null ? createKeptAnswers() : createKeptAnswers(0)
  const queue = createIngestQueue({
    writeBatch: forgetting(keptAnswers, tracing?.ofBatches(writeBatch) ?? writeBatch),
    underWayAtMost: store.shared?.writers ?? 2,
    ...(store.shared !== null && { locksOf: lockNamesOf }),
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

type Taking = Opened & ReturnType<typeof startIntake>

function startRecomputing({
  config,
  store,
  db,
  current,
  keptAnswers,
  wake,
  fail,
  clock,
  log,
  started,
}: Taking) {
  const alone: RecomputeJobsDeps['alone'] = store.shared?.alone ?? ((work) => work(store.writer.recompute))
  const recomputing = createRecomputeJobs({
    compare: (plan, options) =>
      startComparison(config.database, plan, { ...options, clock }).catch((error: unknown) => {
        if (isStoreBroken(error)) fail(error)
        throw error
      }),
    alone: (work) =>
      alone((apply) => work((...call) => keptAnswers.clearedDuring(() => apply(...call)).finally(wake))),
    db,
    writeSync: store.writer.writeSync,
    isRecomputing: async () => (await store.shared?.isRecomputing()) ?? false,
    endpoints: current.endpointRules,
    previewCalls: (customers) => previewCalls(db, current.now().products, customers),
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
function createChanging({ store, db, ingest, tracing, wake, clock, current }: Taking) {
  const read = (query: AccessQuery) => readAccess(db, clock, query)
  const tracedRead = tracing?.ofReads('read access', read) ?? read
  return {
    erasing: {
      db,
      write: ingest,
      // It also removes their platform accounts.
      finish: () => store.writer.finishErasures().finally(wake),
    },
    readAccess: tracedRead,
    performAct: createPerformAct({ db, write: ingest, readAccess: tracedRead, clock }),
    previewAct: createPreviewAct({ db, readAccess: tracedRead, clock }),
    previewCalls: (customers: readonly ProjectedCustomer[]) =>
      previewCalls(db, current.now().products, customers),
  }
}

/** Has several instances take turns at what one of them does at a time. */
function takeTurns(parts: Omit<Parts, 'keyUses'>): void {
  const { store, db, following, recomputing, backfilling, erasing, wake, log, started } = parts
  const { shared } = store
  if (shared === null) return
  /** Continues what an instance has left that ended in the middle; also what another is doing, which does no harm. */
  const takeOver = async () => {
    if (!shared.isLeader()) return
    await recomputing.resume()
    await backfilling.resume()
    if ((await loadUnfinishedErasures(db)).length > 0) await erasing.finish()
  }
  const onLeaderChange = () => following.onLeaderChange().then(takeOver)
  started.add('turns', shared.takeTurns({ onLeaderChange, wake }))
  const failed = 'could not continue a job that another instance left unfinished'
  started.add('takingOver', every(TAKEN_OVER_WITHIN_MS, log, { run: takeOver, failed }).stop)
}
