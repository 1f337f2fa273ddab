import type { Logger } from 'pino'
import type { NormalizedEvent } from '../provider/event.js'
import { CANONICAL_TYPE_OF_V2 } from '../provider/event-types.js'
import type { WrittenDelivery } from './write-batch.js'

/** What is counted of committed deliveries, beside their dispositions. */
export interface WrittenCounts {
  conflict(endpoint: string): void
  headerMismatch(endpoint: string): void
}

export interface ReportWrittenDeps {
  readonly log: Logger
  readonly count: WrittenCounts
}

/** Says what an operator should know of committed deliveries. Logs ids and types, never a body or a person. */
export function createReportWritten({ log, count }: ReportWrittenDeps) {
  const seenVersions = new Set<string>()

  function report({ prepared, receipt, isConflict }: WrittenDelivery): void {
    const { endpoint, eventId, normalized, headers } = prepared
    if (isConflict) {
      count.conflict(endpoint)
      log.error(
        { endpoint, eventId },
        'another body came under the id of a stored event: kept apart, not applied',
      )
    }
    if (receipt.disposition === 'duplicate') return
    if (!normalized.ok) {
      log.warn({ endpoint, eventId, reason: normalized.reason }, 'quarantined: authentic, and not usable')
      return
    }
    const { event } = normalized
    if (event.subject === 'manual') {
      log.info({ eventId, type: event.type, actor: event.actor }, 'done by hand')
      return
    }
    if (headers !== null && headers.event !== null && !isTypeOf(event, headers.event)) {
      count.headerMismatch(endpoint)
      log.warn(
        { endpoint, eventId, type: event.type },
        'X-Webhook-Event names another type: the body decides',
      )
    }
    if (event.apiVersion !== null && !seenVersions.has(event.apiVersion)) {
      seenVersions.add(event.apiVersion)
      log.info({ endpoint, apiVersion: event.apiVersion }, 'first event of this api_version since the start')
    }
  }

  return (written: readonly WrittenDelivery[]): void => written.forEach(report)
}

/** Whether the name, of either generation, is this event's type. */
function isTypeOf({ type }: NormalizedEvent, name: string): boolean {
  const canonical: Readonly<Record<string, string>> = CANONICAL_TYPE_OF_V2
  return name === type || (Object.hasOwn(canonical, name) && canonical[name] === type)
}
