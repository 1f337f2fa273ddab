import type { NormalizedEvent, QuarantineReason } from '../provider/event.js'
import { CANONICAL_TYPE_OF_V2, type ManualEventType } from '../provider/event-types.js'
import type { CommittedBatch, WrittenDelivery } from './commit.js'
import type { Receipt } from './delivery.js'
import type { TouchedCustomers } from './touched-customers.js'

/** What an operator should know of one committed delivery: ids and types, never a body or a person. */
export type Remark = { readonly endpoint: string; readonly eventId: string } & (
  | { readonly kind: 'conflict' }
  | { readonly kind: 'quarantined'; readonly reason: QuarantineReason }
  | { readonly kind: 'header_mismatch'; readonly type: string }
  | { readonly kind: 'new_api_version'; readonly apiVersion: string }
  | { readonly kind: 'manual'; readonly type: ManualEventType; readonly actor: string }
)

/** A committed batch, as whoever sent it needs to know of it. */
export interface WrittenBatch {
  /** In the order of the deliveries. */
  readonly receipts: readonly Receipt[]
  readonly remarks: readonly Remark[]
  readonly touched: readonly TouchedCustomers[]
}

/** Remembers which versions of the provider's API it has seen: a new one is remarked once. */
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
