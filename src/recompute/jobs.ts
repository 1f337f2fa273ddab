import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { Policy } from '../entitlements/policy.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { hasErasedSince } from '../store/erasures.js'
import type { EventFilter } from '../store/event-walk.js'
import { loadJob, loadJobRecord, loadJobRecords } from '../store/recompute.js'
import { type Db, ENVIRONMENTS } from '../store/schema.js'
import type { WriteSync } from '../store/sync-writes.js'
import type { CallPreview } from '../sync/preview-calls.js'
import type { Endpoints } from './read-again.js'
import type { RecomputePlan, RecomputeReport, WorkOptions } from './run.js'

/** Earlier ones are forgotten: the change log has their changes. */
const MAX_REPLAYS = 20

/** Enough examples to look through; the counts cover all. */
export const REPLAY_SAMPLE = 1_000

/** `verification`: whether the state matches its events. `policy diff`: whose access another policy would change. */
export type ComparisonName = 'verification' | 'policy diff'

/** One recompute, of whichever instance. Instants are epoch milliseconds. */
export interface Job {
  /** Only for replays; the others are identified by their kind. */
  readonly id: string
  readonly kind: 'rebuild' | ComparisonName | 'replay'
  /** Grows with every job. */
  readonly number: number
  readonly plan: RecomputePlan
  readonly startedAt: number
  readonly progress: Progress
  readonly outcome:
    | { readonly state: 'running' }
    | { readonly state: 'done'; readonly endedAt: number; readonly report: JobReport }
    | { readonly state: 'stopped' | 'failed'; readonly endedAt: number; readonly reason: string }
}

/** In events. */
export interface Progress {
  readonly reached: number
  readonly total: number
  /** Null until some work is done, like the next. */
  readonly perSecond: number | null
  /** Whole seconds. */
  readonly remainingSeconds: number | null
}

export interface JobReport extends Omit<RecomputeReport, 'customers'> {
  /**
   * Changes that a dry run would cause in roles and groups; null for a real replay, whose changes follow by themselves.
   */
  readonly calls: CallPreview | null
}

/** A replay: its plan has a filter. */
export interface Replay extends Job {
  readonly plan: RecomputePlan & { readonly scope: EventFilter }
}

/** Runs one rebuild, comparison or replay at a time, in the background. */
export type RecomputeJobs = ReturnType<typeof createRecomputeJobs>

export interface RecomputeJobsDeps {
  readonly recompute: (plan: RecomputePlan, options: WorkOptions) => Promise<RecomputeReport>
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

const ABANDONED = 'What ran it has ended: start it again to continue.'

interface Running {
  job: Job
  isStopping: boolean
  ended: Promise<void>
}

export function createRecomputeJobs(deps: RecomputeJobsDeps) {
  const { recompute, db, writeSync, isRecomputing, endpoints, previewCalls, clock, log } = deps
  /** The one of this process. */
  let running: Running | null = null

  const save = (job: Job) => writeSync('saveJobRecord', { id: job.id, record: JSON.stringify(job) })

  async function asItIs(record: string): Promise<Job> {
    const job = JSON.parse(record) as Job
    if (job.id === running?.job.id) return running.job
    if (job.outcome.state !== 'running' || (await isRecomputing())) return job
    return { ...job, outcome: { state: 'stopped', endedAt: job.startedAt, reason: ABANDONED } }
  }

  async function find(id: string): Promise<Job | null> {
    if (running?.job.id === id) return running.job
    const record = await loadJobRecord(db, id)
    return record === null ? null : asItIs(record)
  }

  /** The newest first: the last one of each kind, but several replays. */
  async function known(): Promise<readonly Job[]> {
    const jobs = await Promise.all((await loadJobRecords(db)).map(asItIs))
    return jobs.sort((a, b) => b.number - a.number)
  }

  /** The running one, at whichever instance. */
  const current = async (): Promise<Job | null> =>
    running?.job ?? (await known()).find(({ outcome }) => outcome.state === 'running') ?? null

  /**
   * Starts one, or joins an identical one that is running, at whichever instance.
   * @throws {LatchkeyError} `rebuild_running`, `replay_running`: another one is running
   */
  async function start(kind: Job['kind'], plan: RecomputePlan): Promise<Job> {
    const before = await known()
    const other = running?.job ?? before.find(({ outcome }) => outcome.state === 'running')
    if (other !== undefined) {
      if (other.kind === kind && isSamePlan(other.plan, plan)) return other
      throw busyWith(other.kind, kind)
    }
    const id = kind === 'replay' ? `rep_${randomUUID()}` : kind
    const progress = { reached: 0, total: 0, perSecond: null, remainingSeconds: null }
    const number = (before[0]?.number ?? 0) + 1
    const job: Job = { id, kind, number, plan, startedAt: clock(), progress, outcome: { state: 'running' } }
    const begun = Promise.withResolvers<void>()
    const own: Running = { job, isStopping: false, ended: Promise.resolve() }
    running = own
    own.ended = run(own, async () => {
      // Only one runs at a time.
      for (const one of before)
        if ('reason' in one.outcome && one.outcome.reason === ABANDONED) await save(one)
      const replays = before.filter((one) => one.kind === 'replay')
      for (const { id } of replays.slice(MAX_REPLAYS - 1)) await writeSync('forgetJobRecords', id)
      await save(own.job)
      begun.resolve()
    }).catch((error: unknown) => {
      running = null
      begun.reject(error)
    })
    await Promise.race([begun.promise, own.ended])
    return own.job
  }

  /**
   * @param begin called where it has begun
   * @throws {LatchkeyError} `rebuild_running`: another one has begun before it
   */
  async function run(own: Running, begin: () => Promise<void>): Promise<void> {
    const { kind, plan, startedAt } = own.job
    let first: { readonly at: number; readonly reached: number } | null = null
    let savedAt: number | null = null
    /** That it has ended is seen once it is saved. */
    const change = (next: Partial<Job>) => {
      own.job = { ...own.job, ...next }
    }
    let ended: Promise<Partial<Job>> | null = null
    const endOnce = (report: RecomputeReport) => (ended ??= end(report))
    async function end({ customers, ...report }: RecomputeReport): Promise<Partial<Job>> {
      const { sample: _, ...changes } = report.access.all
      const replayed = { ...report.counts, ...changes, dryRun: plan.mode === 'compare' }
      if (kind === 'rebuild') log.info(changes, 'rebuilt from the stored events')
      if (kind === 'replay') log.info(replayed, 'replayed stored events')
      const calls = kind === 'replay' && plan.mode === 'compare' ? await previewCalls(customers) : null
      const { progress } = own.job
      const done = (calls: JobReport['calls']) => ({
        progress: { ...progress, reached: progress.total, remainingSeconds: 0 },
        outcome: { state: 'done', endedAt: clock(), report: { ...report, calls } } as const,
      })
      await save({ ...own.job, ...done(calls) })
      // An erasure deletes the records before it; this one may have come after it.
      if (calls === null || !(await hasErasedSince(db, startedAt))) return done(calls)
      const unnamed = done({ ...calls, sample: [] })
      await save({ ...own.job, ...unnamed })
      return unnamed
    }
    try {
      const report = await recompute(plan, {
        onDone: endOnce,
        async isStopping() {
          const now = performance.now()
          if (savedAt === null) await begin()
          else if (now > savedAt + SAVE_MS) {
            const isAsked = await save(own.job).catch(() => false)
            // Not before it is saved: `stop` may be called meanwhile.
            own.isStopping ||= isAsked
          } else return own.isStopping
          savedAt = now
          return own.isStopping
        },
        onProgress(reached, total) {
          // Work done by an earlier run took none of this one's time.
          first ??= { at: clock(), reached }
          const seconds = (clock() - first.at) / 1000
          const done = reached - first.reached
          const perSecond = done > 0 && seconds > 0 ? done / seconds : null
          const left = Math.max(0, total - reached)
          const remainingSeconds = perSecond === null ? null : Math.ceil(left / perSecond)
          change({ progress: { reached, total, perSecond, remainingSeconds } })
        },
      })
      change(await endOnce(report))
    } catch (error) {
      if (savedAt === null && isLatchkeyError(error, 'rebuild_running')) throw error
      const isStopped =
        isLatchkeyError(error, 'rebuild_interrupted') || isLatchkeyError(error, 'replay_interrupted')
      const reason = isLatchkeyError(error) ? error.message : 'The cause is in the log.'
      const isComparison = kind === 'verification' || kind === 'policy diff'
      if (!isStopped && !(isComparison && isLatchkeyError(error)))
        log.error({ err: error }, `the ${kind} failed`)
      if (isStopped && kind === 'rebuild') log.info('the rebuild was stopped: run it again to continue')
      const after: Partial<Job> = {
        progress: { ...own.job.progress, remainingSeconds: null },
        outcome: { state: isStopped ? 'stopped' : 'failed', endedAt: clock(), reason },
      }
      const unsaved = (failed: unknown) => log.error({ err: failed }, 'could not save how a job ended')
      await save({ ...own.job, ...after }).catch(unsaved)
      change(after)
    }
    running = null
  }

  async function stop(): Promise<void> {
    if (running === null) return
    running.isStopping = true
    await running.ended
  }

  /** Rebuilds everything under a policy, which is in force from then on. */
  const startRebuild = (policy: Policy): Promise<Job> =>
    start('rebuild', { scope: ENVIRONMENTS, endpoints: null, policy, mode: 'apply' })
  const isReplay = (job: Job | null): job is Replay => job?.kind === 'replay'
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
    /** Continues to move all sources to the policy in force, if that was interrupted. */
    async resume(): Promise<void> {
      const stored = await loadJob(db)
      if (stored?.isMoving !== true || (await current()) !== null) return
      log.warn('not every source has been moved to the policy in force: continuing')
      await startRebuild(stored.policy)
    },
    async startReplay({ filter, dryRun }: { readonly filter: EventFilter; readonly dryRun: boolean }) {
      const mode = dryRun ? 'compare' : 'apply'
      const plan = {
        scope: filter,
        endpoints: endpoints(),
        policy: null,
        mode,
        sampleSize: REPLAY_SAMPLE,
      } as const
      return (await start('replay', plan)) as Replay
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

function isSamePlan(a: RecomputePlan, b: RecomputePlan): boolean {
  const [one, other] = [a, b].map((plan) => JSON.parse(JSON.stringify({ ...plan, sampleSize: 0 })) as unknown)
  return isDeepStrictEqual(one, other)
}

function busyWith(running: Job['kind'], asked: Job['kind']): LatchkeyError {
  if (running === 'replay') {
    return new LatchkeyError('replay_running', 'Another replay is running: wait for it, or stop it.')
  }
  const what = running === 'rebuild' && asked === 'rebuild' ? 'rebuild under another policy' : running
  return new LatchkeyError('rebuild_running', `A ${what} is running: wait for it.`)
}
