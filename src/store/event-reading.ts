import type { Selectable } from 'kysely'
import type { HoldReason, SourceKey } from '../entitlements/model.js'
import { NORMALIZER_VERSION, type NormalizedEvent, type QuarantineReason } from '../provider/event.js'
import type { EventsTable, StoredDisposition } from './schema.js'
import { formOf } from './stored-form.js'

/** What a body was read as, and what became of it. */
export interface EventReading {
  /** The `evt_` id, or `sha256:<hex>` of the body where it has no usable id. */
  readonly eventId: string
  readonly disposition: StoredDisposition
  /** Why it is held or quarantined; null otherwise. */
  readonly reason: QuarantineReason | HoldReason | null
  /** Null exactly where quarantined. */
  readonly event: NormalizedEvent | null
  /** The source that it belongs to, if it is known. */
  readonly source: SourceKey | null
}

/** All that reading a body makes of its row; how and when it came is told by the others. */
export const READ_COLUMNS = [
  'event_id',
  'disposition',
  'reason',
  'generation',
  'type',
  'created_at',
  'normalizer_version',
  'normalized',
  'customer_id',
  'payment_id',
  'source_kind',
  'source_id',
] as const

export type ReadColumns = Pick<Selectable<EventsTable>, (typeof READ_COLUMNS)[number]>

/** By the program of today. */
export function columnsOf({ eventId, disposition, reason, event, source }: EventReading): ReadColumns {
  return {
    event_id: eventId,
    disposition,
    reason,
    generation: event?.generation ?? null,
    type: event?.type ?? null,
    created_at: event?.createdAt ?? null,
    normalizer_version: NORMALIZER_VERSION,
    normalized: event === null ? null : formOf(event),
    customer_id: event?.customerId ?? null,
    payment_id: event?.subject === 'payment' ? event.paymentId : null,
    source_kind: source?.kind ?? null,
    source_id: source?.id ?? null,
  }
}
