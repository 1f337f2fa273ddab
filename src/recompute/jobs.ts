import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { Policy } from '../entitlements/policy.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from '../store/keys.js'
import { isSamePolicy } from '../store/policy.js'
import type { JobMeaning, StoredJob } from '../store/recompute-job.js'
import type { EventFilter } from '../store/stored-event.js'
import type { FollowingCalls } from '../sync/calls-ahead.js'
import type { Recompute } from './recompute.js'
import type { RecomputeReport } from './report.js'
import { isSameMeaning, type RecomputePlan } from './run.js'
import { brokenOff, createWorkRate, finished, type WorkRate } from './work-rate.js'

/** Those before are forgotten: what a replay changed is in the change log. */
const MAX_REMEMBERED = 20

/** Enough to look through; the counts tell of all. */
export const REPLAY_SAMPLE = 1_000

/** The state of the last rebuild. Counted in events. */
export type RebuildStatus =
  | { readonly state: 'none' }
  /** Before this process was started: given again, it goes on. */
  | { readonly state: 'interrupted'; readonly folded: number }
  | { readonly state: 'running'; readonly folded: number; readonly total: number }
  | { readonly state: 'done'; readonly access: RecomputeReport['access'] }
  | { readonly state: 'failed'; readonly reason: string }

/** `verification`: whether all is stored as its events say. `policy diff`: whose access another policy would change. */
export type ComparisonName = 'verification' | 'policy diff'

/** The state of the last comparison of a name, which writes nothing. */
export type ComparisonStatus =
  | Extract<RebuildStatus, { readonly state: 'none' | 'running' | 'failed' }>
  | ({ readonly state: 'done' } & Pick<RecomputeReport, 'access' | 'differences'>)

export interface AskedComparison {
  readonly name: ComparisonName
  readonly environments: readonly Environment[]
  /** Null: the one in force. */
  readonly policy: Policy | null
  /** How many differences are named; all are counted. */
  readonly named: number
}

/** What a replay has done, in all of its runs. */
export interface ReplayReport extends Pick<RecomputeReport, 'counts' | 'access'> {
  /** What roles and groups would have to follow; null where it was written, since they follow by themselves. */
  readonly calls: FollowingCalls | null
}

/** A replay of this process. Instants are epoch milliseconds. */
export interface ReplayStatus {
  readonly id: string
  readonly filter: EventFilter
  /** Nothing is written. */
  readonly dryRun: boolean
  readonly startedAt: number
  readonly progress: WorkRate
  readonly outcome:
    | { readonly state: 'running' }
    | { readonly state: 'done'; readonly endedAt: number; readonly report: ReplayReport }
    | { readonly state: 'stopped' | 'failed'; readonly endedAt: number; readonly reason: string }
}

/** Runs one rebuild, comparison or replay at a time, beside everything else. */
export interface RecomputeJobs {
  /**
   * Starts a rebuild of everything under a policy, which is in force from then on, or joins the one that is running.
   * @throws {LatchkeyError} `rebuild_running`, `replay_running`: another one is
   */
  startRebuild(policy: Policy): RebuildStatus
  rebuildStatus(): Promise<RebuildStatus>
  /**
   * Starts a comparison, or joins the one that is running if it is the same.
   * @throws {LatchkeyError} `rebuild_running`, `replay_running`: something else is
   */
  startComparison(asked: AskedComparison): ComparisonStatus
  comparisonStatus(name: ComparisonName): ComparisonStatus
  /** Goes on moving all sources to the policy in force, if that was interrupted. */
  resume(): Promise<void>
  /**
   * Starts a replay, or joins the one that is running if it is the same.
   * @throws {LatchkeyError} `rebuild_running`, `replay_running`: another one is
   */
  startReplay(asked: { readonly filter: EventFilter; readonly dryRun: boolean }): ReplayStatus
  /** The newest first. */
  replays(): readonly ReplayStatus[]
  findReplay(id: string): ReplayStatus | null
  /** Resolves once it runs no more; what it has done stays. Null where there is no such replay. */
  stopReplay(id: string): Promise<ReplayStatus | null>
  /** Resolves once none runs; what one has done stays, for the next to go on from. */
  close(): Promise<void>
}

export interface RecomputeJobsDeps {
  readonly recompute: Recompute
  readonly loadJob: () => Promise<StoredJob | null>
  /** Asked at every start, since a reload may change them. */
  readonly endpoints: () => NonNullable<JobMeaning['endpoints']>
  readonly callsThatFollow: (customers: RecomputeReport['customers']) => Promise<FollowingCalls>
  readonly clock: () => number
  readonly log: Logger
}

interface Running {
  readonly plan: RecomputePlan
  /** A replay's id, or what else it is. */
  readonly job: 'rebuild' | ComparisonName | (string & {})
  readonly ended: Promise<void>
  isStopping: boolean
}

export function createRecomputeJobs(deps: RecomputeJobsDeps): RecomputeJobs {
  const { recompute, loadJob, endpoints, callsThatFollow, clock, log } = deps
  let rebuild: RebuildStatus = { state: 'none' }
  const comparisons = new Map<ComparisonName, ComparisonStatus>()
  /** In the order in which they were started. */
  const replays = new Map<string, ReplayStatus>()
  let running: Running | null = null
  const isStopping = (): boolean => running?.isStopping ?? false

  function begin(plan: RecomputePlan, job: Running['job'], work: () => Promise<void>): void {
    const ended = Promise.resolve()
      .then(work)
      .finally(() => {
        running = null
      })
    running = { plan, job, ended, isStopping: false }
  }

  async function runRebuild(plan: RecomputePlan): Promise<void> {
    try {
      const { access } = await recompute(plan, {
        onProgress: (folded, total) => {
          rebuild = { state: 'running', folded, total }
        },
        isStopping,
      })
      rebuild = { state: 'done', access }
      const { gains, losses, otherwise } = access.all
      log.info({ gains, losses, otherwise }, 'rebuilt from the stored events')
    } catch (error) {
      rebuild = { state: 'failed', reason: reasonOf(error) }
      if (isLatchkeyError(error, 'rebuild_interrupted'))
        log.info('the rebuild was stopped: it goes on when it is run again')
      else log.error({ err: error }, 'the rebuild failed')
    }
  }

  async function runComparison(name: ComparisonName, plan: RecomputePlan, named: number): Promise<void> {
    try {
      const { access, differences } = await recompute(plan, {
        onProgress: (folded, total) => comparisons.set(name, { state: 'running', folded, total }),
        isStopping,
        ...(name === 'verification' ? { namesAtMost: named } : { sampleSize: named }),
      })
      comparisons.set(name, { state: 'done', access, differences })
    } catch (error) {
      comparisons.set(name, { state: 'failed', reason: reasonOf(error) })
      if (!isLatchkeyError(error)) log.error({ err: error }, `the ${name} failed`)
    }
  }

  function change(id: string, next: (status: ReplayStatus) => Partial<ReplayStatus>): void {
    const status = replays.get(id)
    if (status !== undefined) replays.set(id, { ...status, ...next(status) })
  }

  async function runReplay(id: string, plan: RecomputePlan): Promise<void> {
    const { measure } = createWorkRate(clock)
    const dryRun = plan.mode === 'compare'
    try {
      const { counts, access, customers } = await recompute(plan, {
        onProgress: (reached, total) => change(id, () => ({ progress: measure(reached, total) })),
        isStopping,
        sampleSize: REPLAY_SAMPLE,
      })
      const report = { counts, access, calls: dryRun ? await callsThatFollow(customers) : null }
      change(id, ({ progress }) => ({
        progress: finished(progress),
        outcome: { state: 'done', endedAt: clock(), report },
      }))
      const { gains, losses, otherwise } = access.all
      log.info({ ...counts, gains, losses, otherwise, dryRun }, 'replayed stored events')
    } catch (error) {
      const state = isLatchkeyError(error, 'replay_interrupted') ? 'stopped' : 'failed'
      change(id, ({ progress }) => ({
        progress: brokenOff(progress),
        outcome: { state, endedAt: clock(), reason: reasonOf(error) },
      }))
      if (state === 'failed') log.error({ err: error }, 'the replay failed')
    }
  }

  async function stop(): Promise<void> {
    if (running === null) return
    running.isStopping = true
    await running.ended
  }

  function startRebuild(policy: Policy): RebuildStatus {
    const plan: RecomputePlan = { scope: ENVIRONMENTS, endpoints: null, policy, mode: 'apply' }
    if (running !== null && running.job !== 'rebuild') throw busyWith(running.job)
    if (running !== null && !isSamePolicy(running.plan.policy ?? policy, policy)) {
      throw new LatchkeyError('rebuild_running', 'A rebuild under another policy is running: wait for it.')
    }
    if (running === null) {
      rebuild = { state: 'running', folded: 0, total: 0 }
      begin(plan, 'rebuild', () => runRebuild(plan))
    }
    return rebuild
  }

  return {
    startRebuild,
    async rebuildStatus() {
      const stored = await loadJob()
      if (rebuild.state !== 'none' || stored === null || stored.endpoints !== null) return rebuild
      return { state: 'interrupted', folded: stored.reached }
    },
    startComparison({ name, environments, policy, named }) {
      const plan: RecomputePlan = { scope: environments, endpoints: null, policy, mode: 'compare' }
      if (running !== null && (running.job !== name || !isDeepStrictEqual(running.plan, plan))) {
        throw busyWith(running.job)
      }
      if (running === null) {
        comparisons.set(name, { state: 'running', folded: 0, total: 0 })
        begin(plan, name, () => runComparison(name, plan, named))
      }
      return comparisons.get(name) ?? { state: 'none' }
    },
    comparisonStatus: (name) => comparisons.get(name) ?? { state: 'none' },
    async resume() {
      const stored = await loadJob()
      if (stored?.isMoving !== true) return
      log.warn('not every source has been moved to the policy in force: going on with that')
      startRebuild(stored.policy)
    },
    startReplay({ filter, dryRun }) {
      const plan: RecomputePlan = {
        scope: filter,
        endpoints: endpoints(),
        policy: null,
        mode: dryRun ? 'compare' : 'apply',
      }
      if (running !== null) {
        const known = replays.get(running.job)
        const isSame = running.plan.mode === plan.mode && isSameMeaning(running.plan, plan)
        if (known === undefined || !isSame) throw busyWith(running.job)
        return known
      }
      const id = `rep_${randomUUID()}`
      const progress = createWorkRate(clock).measure(0, 0)
      const status: ReplayStatus = {
        id,
        filter,
        dryRun,
        startedAt: clock(),
        progress,
        outcome: { state: 'running' },
      }
      replays.set(id, status)
      const [oldest] = replays.keys()
      if (replays.size > MAX_REMEMBERED && oldest !== undefined) replays.delete(oldest)
      begin(plan, id, () => runReplay(id, plan))
      return status
    },
    replays: () => [...replays.values()].reverse(),
    findReplay: (id) => replays.get(id) ?? null,
    async stopReplay(id) {
      if (running?.job === id) await stop()
      return replays.get(id) ?? null
    },
    close: stop,
  }
}

function busyWith(job: Running['job']): LatchkeyError {
  switch (job) {
    case 'rebuild':
    case 'verification':
    case 'policy diff':
      return new LatchkeyError('rebuild_running', `A ${job} is running: wait for it.`)
    default:
      return new LatchkeyError('replay_running', 'Another replay is running: wait for it, or stop it.')
  }
}

function reasonOf(error: unknown): string {
  return isLatchkeyError(error) ? error.message : 'The cause is in the log.'
}
