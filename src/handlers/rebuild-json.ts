import type { AccessDifference, DifferenceSummary } from '../ingest/access-difference.js'
import type { RebuildStatus } from '../ingest/rebuild-jobs.js'
import { isoOrNull } from './entitlement-json.js'

/** How a rebuild stands, as the wire shows it. */
export function rebuildJson(status: RebuildStatus) {
  return status.state === 'done' ? { state: status.state, ...summaryJson(status.summary) } : status
}

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
