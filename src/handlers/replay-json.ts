import type { JobReport, Replay } from '../recompute/jobs.js'
import type { EventFilter } from '../store/stored-event.js'
import { iso, isoOrNull } from './entitlement-json.js'
import { summaryJson } from './rebuild-json.js'

/** How a replay stands, as the wire shows it. */
export function replayJson({ id, plan, startedAt, progress, outcome }: Replay) {
  return {
    id,
    state: outcome.state,
    dryRun: plan.mode === 'compare',
    filter: filterJson(plan.scope),
    startedAt: iso(startedAt),
    endedAt: outcome.state === 'running' ? null : iso(outcome.endedAt),
    progress,
    summary: outcome.state === 'done' ? replaySummaryJson(outcome.report) : null,
    reason: 'reason' in outcome ? outcome.reason : null,
  }
}

/** `calls`: what roles and groups would have to follow; null where the replay was made, since they follow by themselves. */
export function replaySummaryJson({ counts, access, calls }: JobReport) {
  return { ...counts, ...summaryJson(access.all), calls }
}

export type ReplayJson = Readonly<ReturnType<typeof replayJson>>
export type ReplaySummaryJson = Readonly<ReturnType<typeof replaySummaryJson>>

function filterJson({ environment, type, disposition, customerId, endpoint, from, to }: EventFilter) {
  return { environment, type, disposition, customerId, endpoint, from: isoOrNull(from), to: isoOrNull(to) }
}
