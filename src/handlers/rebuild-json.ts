import type { Environment } from '../provider/event.js'
import type { ComparisonStatus, RebuildStatus } from '../recompute/jobs.js'
import type { AccessDifference, DifferenceSummary } from '../recompute/report.js'
import { isoOrNull } from './answers.js'

/**
 * The state of a rebuild, as the wire shows it.
 * @param only the environment whose changes are shown; left out: both
 */
export function rebuildJson(status: RebuildStatus, only?: Environment) {
  if (status.state !== 'done') return status
  return { state: status.state, ...summaryJson(status.access[only ?? 'all']) }
}

/** The state of a comparison. Only one that verifies looks for `differences`. */
export function comparisonJson(status: ComparisonStatus) {
  if (status.state !== 'done') return status
  const { access, differences } = status
  return { state: status.state, ...summaryJson(access.all), differences }
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
