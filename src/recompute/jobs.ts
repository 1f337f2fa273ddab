import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { Policy } from '../entitlements/policy.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { EventFilter } from '../store/event-walk.js'
import type { StoredJob } from '../store/recompute.js'
import { ENVIRONMENTS } from '../store/schema.js'
import type { FollowingCalls } from '../sync/calls-ahead.js'
import type { Endpoints } from './read-again.js'
import type { RecomputePlan, RecomputeReport, WorkOptions } from './run.js'

/** Earlier ones are forgotten: the change log has their changes. */
const MAX_REPLAYS = 20

/** Enough examples to look through; the counts cover all. */
const REPLAY_SAMPLE = 1_000

/** `verification`: whether the state matches its events. `policy diff`: whose access another policy would change. */
export type ComparisonName = 'verification' | 'policy diff'

/** One recompute of this process. Instants are epoch milliseconds. */
export interface Job {
  /** Only for replays; the others are identified by their kind. */
  readonly id: string
  readonly kind: 'rebuild' | ComparisonName | 'replay'
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
  readonly calls: FollowingCalls | null
}

/** A replay: its plan has a filter. */
export interface Replay extends Job {
  readonly plan: RecomputePlan & { readonly scope: EventFilter }
}

/** Runs one rebuild, comparison or replay at a time, in the background. */
export type RecomputeJobs = ReturnType<typeof createRecomputeJobs>

export interface RecomputeJobsDeps {
  readonly recompute: (plan: RecomputePlan, options: WorkOptions) => Promise<RecomputeReport>
  readonly loadJob: () => Promise<StoredJob | null>
  /** Called at every start, since a reload may change them. */
  readonly endpoints: () => Endpoints
  readonly callsThatFollow: (customers: RecomputeReport['customers']) => Promise<FollowingCalls>
  readonly clock: () => number
  readonly log: Logger
}

export function createRecomputeJobs(deps: RecomputeJobsDeps) {
  const { recompute, loadJob, endpoints, callsThatFollow, clock, log } = deps
  /** The last one of each kind, but several replays; in the order of their starts. */
  const jobs = new Map<string, Job>()
  let running: { readonly id: string; readonly ended: Promise<void>; isStopping: boolean } | null = null

  /**
   * Starts one, or joins an identical one that is running.
   * @throws {LatchkeyError} `rebuild_running`, `replay_running`: another one is running
   */
  function start(kind: Job['kind'], plan: RecomputePlan): Job {
    const current = jobs.get(running?.id ?? '')
    if (current !== undefined && running !== null) {
      if (current.kind === kind && isSamePlan(current.plan, plan)) return current
      throw busyWith(current.kind, kind)
    }
    const id = kind === 'replay' ? `rep_${randomUUID()}` : kind
    const progress = { reached: 0, total: 0, perSecond: null, remainingSeconds: null }
    const job: Job = { id, kind, plan, startedAt: clock(), progress, outcome: { state: 'running' } }
    jobs.delete(id)
    jobs.set(id, job)
    const replays = [...jobs.values()].filter((one) => one.kind === 'replay')
    if (replays.length > MAX_REPLAYS) jobs.delete(String(replays[0]?.id))
    const ended = Promise.resolve()
      .then(() => run(job))
      .finally(() => {
        running = null
      })
    running = { id, ended, isStopping: false }
    return job
  }

  async function run(job: Job): Promise<void> {
    const { id, kind, plan } = job
    let { progress } = job
    let first: { readonly at: number; readonly reached: number } | null = null
    const change = (next: Partial<Job>) => jobs.set(id, { ...job, progress, ...next })
    try {
      const { customers, ...report } = await recompute(plan, {
        isStopping: () => running?.isStopping ?? false,
        onProgress(reached, total) {
          // Work done by an earlier run took none of this one's time.
          first ??= { at: clock(), reached }
          const seconds = (clock() - first.at) / 1000
          const done = reached - first.reached
          const perSecond = done > 0 && seconds > 0 ? done / seconds : null
          const left = Math.max(0, total - reached)
          const remainingSeconds = perSecond === null ? null : Math.ceil(left / perSecond)
          progress = { reached, total, perSecond, remainingSeconds }
          change({})
        },
      })
      const calls = kind === 'replay' && plan.mode === 'compare' ? await callsThatFollow(customers) : null
      progress = { ...progress, reached: progress.total, remainingSeconds: 0 }
      change({ outcome: { state: 'done', endedAt: clock(), report: { ...report, calls } } })
      const { sample: _, ...changes } = report.access.all
      const replayed = { ...report.counts, ...changes, dryRun: plan.mode === 'compare' }
      if (kind === 'rebuild') log.info(changes, 'rebuilt from the stored events')
      if (kind === 'replay') log.info(replayed, 'replayed stored events')
    } catch (error) {
      const isStopped =
        isLatchkeyError(error, 'rebuild_interrupted') || isLatchkeyError(error, 'replay_interrupted')
      const reason = isLatchkeyError(error) ? error.message : 'The cause is in the log.'
      progress = { ...progress, remainingSeconds: null }
      change({ outcome: { state: isStopped ? 'stopped' : 'failed', endedAt: clock(), reason } })
      const isComparison = kind === 'verification' || kind === 'policy diff'
      if (!isStopped && !(isComparison && isLatchkeyError(error)))
        log.error({ err: error }, `the ${kind} failed`)
      if (isStopped && kind === 'rebuild') log.info('the rebuild was stopped: run it again to continue')
    }
  }

  async function stop(): Promise<void> {
    if (running === null) return
    running.isStopping = true
    await running.ended
  }

  /** Rebuilds everything under a policy, which is in force from then on. */
  const startRebuild = (policy: Policy): Job =>
    start('rebuild', { scope: ENVIRONMENTS, endpoints: null, policy, mode: 'apply' })
  const replay = (id: string) => (jobs.get(id)?.kind === 'replay' ? (jobs.get(id) as Replay) : null)

  return {
    startRebuild,
    /** The running one. */
    current: (): Job | null => jobs.get(running?.id ?? '') ?? null,
    /** The last one of a kind. */
    last: (kind: Exclude<Job['kind'], 'replay'>): Job | null => jobs.get(kind) ?? null,
    /** @param policy null: the one in force */
    startComparison: (
      name: ComparisonName,
      environments: readonly Environment[],
      policy: Policy | null,
      sampleSize: number,
    ): Job => {
      const mode = name === 'verification' ? 'verify' : 'compare'
      return start(name, { scope: environments, endpoints: null, policy, mode, sampleSize })
    },
    /** Continues to move all sources to the policy in force, if that was interrupted. */
    async resume(): Promise<void> {
      const stored = await loadJob()
      if (stored?.isMoving !== true) return
      log.warn('not every source has been moved to the policy in force: continuing')
      startRebuild(stored.policy)
    },
    startReplay({ filter, dryRun }: { readonly filter: EventFilter; readonly dryRun: boolean }): Replay {
      const mode = dryRun ? 'compare' : 'apply'
      const plan = {
        scope: filter,
        endpoints: endpoints(),
        policy: null,
        mode,
        sampleSize: REPLAY_SAMPLE,
      } as const
      return start('replay', plan) as Replay
    },
    /** The newest first. */
    replays: (): readonly Replay[] => [...jobs.keys()].flatMap((id) => replay(id) ?? []).reverse(),
    findReplay: replay,
    /** Resolves once it has stopped; finished work stays. */
    async stopReplay(id: string): Promise<Replay | null> {
      if (running?.id === id) await stop()
      return replay(id)
    },
    /** Resolves once none runs; finished work stays, for the next to continue from. */
    close: stop,
  }
}

function isSamePlan(a: RecomputePlan, b: RecomputePlan): boolean {
  return isDeepStrictEqual({ ...a, sampleSize: 0 }, { ...b, sampleSize: 0 })
}

function busyWith(running: Job['kind'], asked: Job['kind']): LatchkeyError {
  if (running === 'replay') {
    return new LatchkeyError('replay_running', 'Another replay is running: wait for it, or stop it.')
  }
  const what = running === 'rebuild' && asked === 'rebuild' ? 'rebuild under another policy' : running
  return new LatchkeyError('rebuild_running', `A ${what} is running: wait for it.`)
}
