import type { EventFilter } from '../entitlements/stored-event.js'
import type { ReplayReport, ReplayStatus } from '../recompute/jobs.js'
import { iso, isoOrNull } from './answers.js'
import { summaryJson } from './rebuild-json.js'

/** How a replay stands, as the wire shows it. */
export function replayJson({ id, filter, dryRun, startedAt, progress, outcome }: ReplayStatus) {
  return {
    id,
    state: outcome.state,
    dryRun,
    filter: filterJson(filter),
    startedAt: iso(startedAt),
    endedAt: outcome.state === 'running' ? null : iso(outcome.endedAt),
    progress,
    summary: outcome.state === 'done' ? replaySummaryJson(outcome.report) : null,
    reason: 'reason' in outcome ? outcome.reason : null,
  }
}

/** `calls`: what roles and groups would have to follow; null where the replay was made, since they follow by themselves. */
export function replaySummaryJson({ counts, access, calls }: ReplayReport) {
  return { ...counts, ...summaryJson(access.all), calls }
}

export type ReplayJson = Readonly<ReturnType<typeof replayJson>>
export type ReplaySummaryJson = Readonly<ReturnType<typeof replaySummaryJson>>

function filterJson({ environment, type, disposition, customerId, endpoint, from, to }: EventFilter) {
  return { environment, type, disposition, customerId, endpoint, from: isoOrNull(from), to: isoOrNull(to) }
}
