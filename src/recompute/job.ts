/* What is known of a recompute that runs in the background, and how that changes. Pure. */

import { isDeepStrictEqual } from 'node:util'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { EventFilter } from '../store/event-walk.js'
import { inForm, textOf } from '../store/recompute.js'
import type { CallPreview } from '../sync/preview-calls.js'
import type { RecomputePlan, RecomputeReport } from './run.js'

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

export const isReplay = (job: Job | null): job is Replay => job?.kind === 'replay'

export const isRunning = ({ outcome }: Job): boolean => outcome.state === 'running'

export const recordOf = (job: Job) => ({ id: job.id, record: textOf(job) })

/** Null if a newer Latchkey wrote it: it is not known then. */
export const jobIn = (record: string): Job | null => inForm<Job>(record)

export function newJob(job: Pick<Job, 'id' | 'kind' | 'number' | 'plan' | 'startedAt'>): Job {
  const progress = { reached: 0, total: 0, perSecond: null, remainingSeconds: null }
  return { ...job, progress, outcome: { state: 'running' } }
}

/** @param first where it was first: work done by an earlier run took none of this one's time */
export function progressed(
  job: Job,
  first: { readonly at: number; readonly reached: number },
  [reached, total, now]: readonly [reached: number, total: number, now: number],
): Job {
  const seconds = (now - first.at) / 1000
  const done = reached - first.reached
  const perSecond = done > 0 && seconds > 0 ? done / seconds : null
  const remainingSeconds = perSecond === null ? null : Math.ceil(Math.max(0, total - reached) / perSecond)
  return { ...job, progress: { reached, total, perSecond, remainingSeconds } }
}

export function finished(job: Job, report: JobReport, endedAt: number): Job {
  const progress = { ...job.progress, reached: job.progress.total, remainingSeconds: 0 }
  return { ...job, progress, outcome: { state: 'done', endedAt, report } }
}

export function brokenOff(job: Job, error: unknown, endedAt: number): Job {
  const isStopped =
    isLatchkeyError(error, 'rebuild_interrupted') || isLatchkeyError(error, 'replay_interrupted')
  const reason = isLatchkeyError(error) ? error.message : 'The cause is in the log.'
  const progress = { ...job.progress, remainingSeconds: null }
  return { ...job, progress, outcome: { state: isStopped ? 'stopped' : 'failed', endedAt, reason } }
}

const ABANDONED = 'The daemon that ran it has stopped: start it again to continue.'

/** A job whose process has ended. */
export function abandoned(job: Job): Job {
  return { ...job, outcome: { state: 'stopped', endedAt: job.startedAt, reason: ABANDONED } }
}

export function isAbandoned({ outcome }: Job): boolean {
  return 'reason' in outcome && outcome.reason === ABANDONED
}

/** Whether a job does what is asked for. */
export function isSame(job: Job, kind: Job['kind'], plan: RecomputePlan): boolean {
  const [one, other] = [job.plan, plan].map(
    (each) => JSON.parse(JSON.stringify({ ...each, sampleSize: 0 })) as unknown,
  )
  return job.kind === kind && isDeepStrictEqual(one, other)
}

/** The error for what must wait for a running job. */
export function busyWith({ kind }: Job, asked: Job['kind']): LatchkeyError {
  if (kind === 'replay') {
    return new LatchkeyError('replay_running', 'Another replay is running: wait for it, or stop it.')
  }
  const what = kind === 'rebuild' && asked === 'rebuild' ? 'rebuild under another policy' : kind
  return new LatchkeyError('rebuild_running', `A ${what} is running: wait for it to end.`)
}
