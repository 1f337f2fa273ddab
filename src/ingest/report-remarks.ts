import type { Logger } from 'pino'
import type { Remark } from './remarks.js'

/** The actor of an erasure that nobody gave: it follows the provider's event of that type, if the config says so. */
export const ERASED_AFTER_DELETION = 'customer.deleted'

/** What is counted of committed deliveries, beside their dispositions. */
export interface RemarkCounts {
  conflict(endpoint: string): void
  headerMismatch(endpoint: string): void
}

export interface ReportRemarksDeps {
  readonly log: Logger
  readonly count: RemarkCounts
}

/** Tells the operator, in the log and in the metrics. */
export function createReportRemarks({ log, count }: ReportRemarksDeps): (remarks: readonly Remark[]) => void {
  function report(remark: Remark): void {
    const { kind, endpoint, eventId } = remark
    switch (kind) {
      case 'conflict':
        count.conflict(endpoint)
        log.error(
          { endpoint, eventId },
          'another body came under the id of a stored event: kept apart, not applied',
        )
        break
      case 'quarantined':
        log.warn({ endpoint, eventId, reason: remark.reason }, 'quarantined: authentic, and not usable')
        break
      case 'header_mismatch':
        count.headerMismatch(endpoint)
        log.warn(
          { endpoint, eventId, type: remark.type },
          'X-Webhook-Event names another type: the body decides',
        )
        break
      case 'new_api_version':
        log.info(
          { endpoint, apiVersion: remark.apiVersion },
          'first event of this api_version since the start',
        )
        break
      case 'manual':
        log.info({ eventId, type: remark.type, actor: remark.actor }, doneBy(remark))
        break
      default:
        kind satisfies never
    }
  }

  return (remarks) => remarks.forEach(report)
}

function doneBy({ type, actor }: Pick<Remark & { kind: 'manual' }, 'type' | 'actor'>): string {
  const isOfItself = type === 'manual.erased' && actor === ERASED_AFTER_DELETION
  return isOfItself ? 'erased by itself: the provider has deleted the customer' : 'done by hand'
}
