/* Runs one rebuild, comparison or replay at a time in the background, and knows those of every instance. */

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import { RULES_VERSION } from '../entitlements/derive.js'
import type { Policy } from '../entitlements/policy.js'
import { isLatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { hasErasedSince } from '../store/erasures.js'
import type { EventFilter } from '../store/event-walk.js'
import { loadJob, loadJobRecord, loadJobRecords, notMoved, ofNewer, readJob } from '../store/recompute.js'
import { type Db, ENVIRONMENTS } from '../store/schema.js'
import { loadRulesVersion, policyInForce } from '../store/settings.js'
import type { CallPreview } from '../sync/preview-calls.js'
import type { WriteSync } from '../sync/writes.js'
import type { CompareOptions } from './compare.js'
import {
  abandoned,
  brokenOff,
  busyWith,
  type ComparisonName,
  finished,
  isAbandoned,
  isReplay,
  isRunning,
  isSame,
  type Job,
  jobIn,
  newJob,
  progressed,
  type Replay,
  recordOf,
} from './job.js'
import type { Endpoints } from './read-again.js'
import type { ApplyPlan, ComparePlan, RecomputePlan, RecomputeReport, WorkOptions } from './run.js'

/** Earlier ones are forgotten: the change log has their changes. */
const MAX_REPLAYS = 20

/** Enough examples to look through; the counts cover all. */
export const REPLAY_SAMPLE = 1_000

export type Apply = (plan: ApplyPlan, options: WorkOptions) => Promise<RecomputeReport>

export interface RecomputeJobsDeps {
  /** Writes nothing. */
  readonly compare: (
    plan: ComparePlan,
    options: Pick<CompareOptions, 'onProgress' | 'signal'>,
  ) => Promise<RecomputeReport>
  /**
   * Works while no other instance runs a job.
   * @throws {LatchkeyError} `rebuild_running`: one does
   */
  readonly alone: <T>(work: (apply: Apply) => Promise<T>) => Promise<T>
  readonly db: Db
  readonly writeSync: WriteSync
  /** Whether any instance runs a job; false if this is the only one. */
  readonly isRecomputing: () => Promise<boolean>
  /** Called at every start, since a reload may change them. */
  readonly endpoints: () => Endpoints
  readonly previewCalls: (customers: RecomputeReport['customers']) => Promise<CallPreview>
  readonly clock: () => number
  readonly log: Logger
}

/** How often the progress is saved, and how often it is asked whether a job of another instance has stopped. */
const SAVE_MS = 1_000
const LOOK_MS = 200

/** The job of this process. */
interface Running {
  job: Job
  readonly stopping: AbortController
  /** Never rejects. */
  ended: Promise<void>
}

export type RecomputeJobs = ReturnType<typeof createRecomputeJobs>

export function createRecomputeJobs(deps: RecomputeJobsDeps) {
  const { db, writeSync, isRecomputing, endpoints, clock, log } = deps
  let running: Running | null = null
  /** The last comparison here, if the store could not be written. */
  let unrecorded: Running | null = null

  async function asItIs(record: string): Promise<Job | null> {
    const job = jobIn(record)
    if (job === null || !isRunning(job)) return job
    if (job.id === running?.job.id) return running.job
    return (await isRecomputing()) ? job : abandoned(job)
  }

  async function find(id: string): Promise<Job | null> {
    for (const own of [running, unrecorded]) if (own?.job.id === id) return own.job
    const record = await loadJobRecord(db, id)
    return record === null ? null : asItIs(record)
  }

  /** The newest first: the last one of each kind, but several replays. */
  async function known(): Promise<readonly Job[]> {
    const jobs = await Promise.all((await loadJobRecords(db)).map(asItIs))
    return jobs.filter((job) => job !== null).sort((a, b) => b.number - a.number)
  }

  /** The running one, at whichever instance. */
  const current = async (): Promise<Job | null> => running?.job ?? (await known()).find(isRunning) ?? null

  /**
   * Starts one, or joins an identical one that is running, at whichever instance. Resolves once it has begun.
   * @throws {LatchkeyError} `rebuild_running`, `replay_running`: another one is running
   */
  async function start(kind: Job['kind'], plan: RecomputePlan): Promise<Job> {
    // Its end is shown before it has given back its turn.
    if (running !== null && !isRunning(running.job)) await running.ended
    const before = await known()
    const other = running?.job ?? before.find(isRunning)
    if (other !== undefined) {
      if (isSame(other, kind, plan)) return other
      throw busyWith(other, kind)
    }
    const id = kind === 'replay' ? `rep_${randomUUID()}` : kind
    const job = newJob({ id, kind, plan, number: (before[0]?.number ?? 0) + 1, startedAt: clock() })
    const own: Running = { job, stopping: new AbortController(), ended: Promise.resolve() }
    running = own
    const begun = Promise.withResolvers<void>()
    unrecorded = null
    // A comparison is recorded for the other instances, but goes on where the store can't be written.
    const tryToWrite = (...write: Parameters<WriteSync>) =>
      writeSync(...write).catch((error: unknown) => {
        log.warn({ err: error }, 'could not record a comparison, which goes on')
        unrecorded = own
      })
    const uses = plan.mode === 'apply' ? deps : { ...deps, writeSync: tryToWrite as WriteSync }
    own.ended = runAlone(own, before, uses, begun.resolve)
      .catch(begun.reject)
      .finally(() => {
        running = null
      })
    await begun.promise
    return own.job
  }

  async function stop(): Promise<void> {
    running?.stopping.abort()
    await running?.ended
  }

  /** Rebuilds everything under a policy, which is in force from then on. */
  const startRebuild = (policy: Policy): Promise<Job> =>
    start('rebuild', { scope: ENVIRONMENTS, endpoints: null, policy, mode: 'apply' })
  const findReplay = async (id: string): Promise<Replay | null> => {
    const job = await find(id)
    return isReplay(job) ? job : null
  }

  return {
    startRebuild,
    current,
    /** The last one of a kind. */
    last: (kind: Exclude<Job['kind'], 'replay'>): Promise<Job | null> => find(kind),
    startComparison: (
      name: ComparisonName,
      environments: readonly Environment[],
      /** Null: the one in force. */
      policy: Policy | null,
      sampleSize: number,
    ): Promise<Job> => {
      const mode = name === 'verification' ? 'verify' : 'compare'
      return start(name, { scope: environments, endpoints: null, policy, mode, sampleSize })
    },
    /** Continues to move all sources to the policy in force, or to the rules of this version, if that is unfinished. */
    async resume(): Promise<void> {
      const stored = await readJob(db)
      if (stored === 'newer') log.warn(ofNewer().message)
      const isOutdated = (await loadRulesVersion(db)) < RULES_VERSION
      if (stored === 'newer' || !(stored?.isMoving || isOutdated) || (await current()) !== null) return
      log.warn(
        stored?.isMoving
          ? 'not every source has been moved to the policy in force: continuing'
          : 'this version has more exact rules of access: rebuilding from the stored events',
      )
      await startRebuild(stored?.isMoving ? stored.policy : await policyInForce(db))
    },
    async startReplay({ filter, dryRun }: { readonly filter: EventFilter; readonly dryRun: boolean }) {
      const mode = dryRun ? 'compare' : 'apply'
      const what = { scope: filter, endpoints: endpoints(), policy: null, sampleSize: REPLAY_SAMPLE }
      return (await start('replay', { ...what, mode })) as Replay
    },
    /** The newest first. */
    replays: async (): Promise<readonly Replay[]> => (await known()).filter(isReplay),
    findReplay,
    /** Resolves once it has stopped, at whichever instance; finished work stays. */
    async stopReplay(id: string): Promise<Replay | null> {
      if (running?.job.id === id) await stop()
      else if ((await findReplay(id))?.outcome.state === 'running') {
        await writeSync('stopJob', id)
        while ((await findReplay(id))?.outcome.state === 'running') await wait(LOOK_MS)
      }
      return findReplay(id)
    },
    /** Resolves once none runs here; finished work stays, for the next to continue from. */
    close: stop,
  }
}

/**
 * Runs a job from its beginning to its saved end, whatever that is.
 * @throws what keeps it from beginning
 */
function runAlone(
  own: Running,
  before: readonly Job[],
  { alone, compare, db, writeSync, previewCalls, clock, log }: RecomputeJobsDeps,
  onBegun: () => void,
): Promise<void> {
  const { kind, plan, startedAt } = own.job
  const { signal } = own.stopping
  const save = (job: Job) => writeSync('saveJobRecord', recordOf(job))

  /** @throws {LatchkeyError} `rebuild_running`: something unfinished has to end first */
  async function begin(): Promise<void> {
    const stored = await loadJob(db)
    if (stored?.isMoving && plan.policy === null) throw notMoved()
    // Only one runs at a time.
    for (const one of before.filter(isAbandoned)) await save(one)
    const replays = before.filter(isReplay)
    for (const { id } of replays.slice(MAX_REPLAYS - 1)) await writeSync('forgetJobRecords', id)
    await save(own.job)
  }

  /** Saves how far the job is, and stops it if somebody asks for that, at any instance. */
  async function keepSaved(over: AbortSignal): Promise<void> {
    for (;;) {
      await wait(SAVE_MS, undefined, { signal: over }).catch(() => {})
      if (over.aborted) return
      if (await save(own.job).catch(() => false)) own.stopping.abort()
    }
  }

  function work(apply: Apply): Promise<RecomputeReport> {
    let first: { readonly at: number; readonly reached: number } | null = null
    const onProgress = (reached: number, total: number): void => {
      const now = clock()
      first ??= { at: now, reached }
      own.job = progressed(own.job, first, [reached, total, now])
    }
    if (plan.mode !== 'apply') return compare(plan, { onProgress, signal })
    return apply(plan, { onProgress, isStopping: () => signal.aborted })
  }

  async function succeed({ customers, ...report }: RecomputeReport): Promise<Job> {
    const { sample: _, ...changes } = report.access.all
    const dryRun = plan.mode === 'compare'
    if (kind === 'rebuild') log.info(changes, 'rebuilt from the stored events')
    if (kind === 'replay') log.info({ ...report.counts, ...changes, dryRun }, 'replayed stored events')
    const calls = kind === 'replay' && dryRun ? await previewCalls(customers) : null
    const done = finished(own.job, { ...report, calls }, clock())
    await save(done)
    // An erasure deletes the records before it; this one may have come after it.
    if (calls === null || !(await hasErasedSince(db, startedAt))) return done
    const unnamed = finished(own.job, { ...report, calls: { ...calls, sample: [] } }, clock())
    await save(unnamed)
    return unnamed
  }

  async function fail(error: unknown): Promise<Job> {
    const ended = brokenOff(own.job, error, clock())
    const isStopped = ended.outcome.state === 'stopped'
    // Its message is the answer to the caller.
    const isAnswer = (kind === 'verification' || kind === 'policy diff') && isLatchkeyError(error)
    if (!isStopped && !isAnswer) log.error({ err: error }, `the ${kind} failed`)
    if (isStopped && kind === 'rebuild') log.info('the rebuild was stopped: run it again to continue')
    await save(ended).catch((failed: unknown) => log.error({ err: failed }, 'could not save how a job ended'))
    return ended
  }

  return alone(async (apply) => {
    await begin()
    onBegun()
    const over = new AbortController()
    const saving = keepSaved(over.signal)
    const working = work(apply)
    await Promise.allSettled([working])
    over.abort()
    await saving
    // That it has ended is seen once it is saved.
    own.job = await working.then(succeed).catch(fail)
  })
}
