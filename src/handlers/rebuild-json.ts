import type { Environment } from '../provider/event.js'
import type { Job } from '../recompute/jobs.js'
import type { AccessDifference, DifferenceSummary } from '../recompute/report.js'
import { isoOrNull } from './entitlement-json.js'

/**
 * The state of a rebuild, as the wire shows it.
 * @param job the last one of this process; null: none
 * @param interruptedAt how far one was before that, which goes on once it is run again; null: there is none
 * @param only the environment whose changes are shown; left out: both
 */
export function rebuildJson(job: Job | null, interruptedAt: number | null = null, only?: Environment) {
  if (job === null && interruptedAt !== null) return { state: 'interrupted' as const, folded: interruptedAt }
  if (job?.outcome.state !== 'done') return unfinishedJson(job)
  return { state: job.outcome.state, ...summaryJson(job.outcome.report.access[only ?? 'all']) }
}

/** The state of a comparison. Only one that verifies looks for `differences`. */
export function comparisonJson(job: Job | null) {
  if (job?.outcome.state !== 'done') return unfinishedJson(job)
  const { access, differences } = job.outcome.report
  return { state: job.outcome.state, ...summaryJson(access.all), differences }
}

function unfinishedJson(job: Job | null) {
  if (job === null) return { state: 'none' as const }
  const { outcome, progress } = job
  if ('reason' in outcome) return { state: 'failed' as const, reason: outcome.reason }
  return { state: 'running' as const, folded: progress.reached, total: progress.total }
}

export type ComparisonJson = ReturnType<typeof comparisonJson>

export type RebuildJson = ReturnType<typeof rebuildJson>

export function summaryJson({ gains, losses, otherwise, sample }: DifferenceSummary) {
  return { gains, losses, otherwise, sample: sample.map(differenceJson) }
}

export type SummaryJson = Readonly<ReturnType<typeof summaryJson>>

function differenceJson({ environment, customerId, productId, before, after }: AccessDifference) {
  return { environment, customerId, productId, before: snapshotJson(before), after: snapshotJson(after) }
}

function snapshotJson({ active, status, since, until }: AccessDifference['before']) {
  return { active, status, since: isoOrNull(since), until: isoOrNull(until) }
}
