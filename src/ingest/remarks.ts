import type { Logger } from 'pino'
import type { NormalizedEvent, QuarantineReason } from '../provider/event.js'
import { CANONICAL_TYPE_OF_V2, type ManualEventType } from '../provider/event-types.js'
import type { CommittedBatch, WrittenDelivery } from './commit.js'
import type { Receipt } from './delivery.js'
import type { TouchedCustomers } from './settle.js'

/** A note for the operator on a committed delivery: ids and types, never a body or personal data. */
export type Remark = { readonly endpoint: string; readonly eventId: string } & (
  | { readonly kind: 'conflict' }
  | { readonly kind: 'quarantined'; readonly reason: QuarantineReason }
  | { readonly kind: 'header_mismatch'; readonly type: string }
  | { readonly kind: 'new_api_version'; readonly apiVersion: string }
  | { readonly kind: 'manual'; readonly type: ManualEventType; readonly actor: string }
)

/** The parts of a committed batch that notes are made from. */
export interface WrittenBatch {
  /** In the order of the deliveries. */
  readonly receipts: readonly Receipt[]
  readonly remarks: readonly Remark[]
  readonly touched: readonly TouchedCustomers[]
}

/** Remembers the versions of the provider's API that it has seen: each new one is noted once. */
export function createWrittenBatch(): (committed: CommittedBatch) => WrittenBatch {
  const seenVersions = new Set<string>()

  function remarksOn({ prepared, receipt, isConflict }: WrittenDelivery): Remark[] {
    const { endpoint, eventId, normalized, headers } = prepared
    const remarks: Remark[] = isConflict ? [{ endpoint, eventId, kind: 'conflict' }] : []
    if (receipt.disposition === 'duplicate') return remarks
    if (!normalized.ok)
      return [...remarks, { endpoint, eventId, kind: 'quarantined', reason: normalized.reason }]
    const { event } = normalized
    if (event.subject === 'manual') {
      return [...remarks, { endpoint, eventId, kind: 'manual', type: event.type, actor: event.actor }]
    }
    if (headers !== null && headers.event !== null && !isTypeOf(event, headers.event)) {
      remarks.push({ endpoint, eventId, kind: 'header_mismatch', type: event.type })
    }
    if (event.apiVersion !== null && !seenVersions.has(event.apiVersion)) {
      seenVersions.add(event.apiVersion)
      remarks.push({ endpoint, eventId, kind: 'new_api_version', apiVersion: event.apiVersion })
    }
    return remarks
  }

  return ({ deliveries, touched }) => ({
    receipts: deliveries.map(({ receipt }) => receipt),
    remarks: deliveries.flatMap(remarksOn),
    touched,
  })
}

/** Whether the name, of either generation, is this event's type. */
function isTypeOf({ type }: NormalizedEvent, name: string): boolean {
  const canonical: Readonly<Record<string, string>> = CANONICAL_TYPE_OF_V2
  return name === type || (Object.hasOwn(canonical, name) && canonical[name] === type)
}

/** The actor of an erasure that follows the provider's event of that type, if the config says so. */
export const ERASED_AFTER_DELETION = 'customer.deleted'

/** Counters of committed deliveries, beside their dispositions. */
interface RemarkCounts {
  conflict(endpoint: string): void
  headerMismatch(endpoint: string): void
}

/** Reports to the operator, in the log and in the metrics. */
export function reportRemarks(remarks: readonly Remark[], log: Logger, count: RemarkCounts): void {
  for (const remark of remarks) {
    const { kind, endpoint, eventId } = remark
    switch (kind) {
      case 'conflict':
        count.conflict(endpoint)
        log.error(
          { endpoint, eventId },
          'another body came under the id of a stored event: stored separately, not applied',
        )
        break
      case 'quarantined':
        log.warn({ endpoint, eventId, reason: remark.reason }, 'quarantined: authentic, but not usable')
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
}

function doneBy({ type, actor }: Pick<Remark & { kind: 'manual' }, 'type' | 'actor'>): string {
  const isOfItself = type === 'manual.erased' && actor === ERASED_AFTER_DELETION
  return isOfItself ? 'erased automatically: the provider has deleted the customer' : 'changed by hand'
}
