import type { EventFilter } from '../entitlements/stored-event.js'
import type { ReplayStatus } from '../ingest/replay-jobs.js'
import { iso, isoOrNull } from './entitlement-json.js'
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
    summary:
      outcome.state === 'done' ? { ...outcome.report.counts, ...summaryJson(outcome.report.access) } : null,
    reason: 'reason' in outcome ? outcome.reason : null,
  }
}

export type ReplayJson = Readonly<ReturnType<typeof replayJson>>
export type ReplaySummaryJson = NonNullable<ReplayJson['summary']>

function filterJson({ environment, type, disposition, customerId, endpoint, from, to }: EventFilter) {
  return { environment, type, disposition, customerId, endpoint, from: isoOrNull(from), to: isoOrNull(to) }
}
