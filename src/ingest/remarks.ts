import type { Logger } from 'pino'
import type { NormalizedEvent } from '../provider/event.js'
import { CANONICAL_TYPE_OF_V2 } from '../provider/event-types.js'
import { signedHeaders } from '../store/events.js'
import type { Disposition } from './delivery.js'
import type { PreparedDelivery } from './prepare.js'

export interface WrittenDelivery {
  readonly prepared: PreparedDelivery
  readonly disposition: Disposition
  /** Whether an event with the same id and another body was already stored. */
  readonly isConflict: boolean
}

/** A note for the operator on a committed delivery. */
export interface Remark {
  readonly level: 'error' | 'warn' | 'info'
  readonly message: string
  /** Ids and types, never a body or personal data. */
  readonly fields: Readonly<Record<string, string>>
  /** The counter of its endpoint that it raises. */
  readonly counts?: keyof RemarkCounts
}

/** The actor of an erasure that follows the provider's event of that type, if the config says so. */
export const ERASED_AFTER_DELETION = 'customer.deleted'

/** @param seenVersions of the provider's API: each new one is noted once */
export function remarksOn({ prepared, disposition, isConflict }: WrittenDelivery, seenVersions: Set<string>) {
  const { endpoint, eventId, normalized } = prepared
  const named = signedHeaders(prepared.headers)?.event ?? null
  const remarks: Remark[] = []
  if (isConflict) {
    const message = 'another body came under the id of a stored event: stored separately, not applied'
    remarks.push({ level: 'error', message, fields: { endpoint, eventId }, counts: 'conflict' })
  }
  if (disposition === 'duplicate') return remarks
  if (!normalized.ok) {
    const fields = { endpoint, eventId, reason: normalized.reason }
    remarks.push({ level: 'warn', message: 'quarantined: authentic, but not usable', fields })
    return remarks
  }
  const { event } = normalized
  const { type, apiVersion } = event
  if (event.subject === 'manual') {
    const { actor } = event
    const isOfItself = type === 'manual.erased' && actor === ERASED_AFTER_DELETION
    const message = isOfItself
      ? 'erased automatically: the provider has deleted the customer'
      : 'manual change'
    remarks.push({ level: 'info', message, fields: { eventId, type, actor } })
    return remarks
  }
  if (named !== null && !isTypeOf(event, named)) {
    const message = 'X-Webhook-Event names another type: the body decides'
    remarks.push({ level: 'warn', message, fields: { endpoint, eventId, type }, counts: 'headerMismatch' })
  }
  if (apiVersion !== null && !seenVersions.has(apiVersion)) {
    seenVersions.add(apiVersion)
    const message = 'first event of this api_version since the start'
    remarks.push({ level: 'info', message, fields: { endpoint, apiVersion } })
  }
  return remarks
}

/** Whether the name, of either generation, is this event's type. */
function isTypeOf({ type }: NormalizedEvent, name: string): boolean {
  const canonical: Readonly<Record<string, string>> = CANONICAL_TYPE_OF_V2
  return name === type || (Object.hasOwn(canonical, name) && canonical[name] === type)
}

/** Counters of committed deliveries, beside their dispositions. */
interface RemarkCounts {
  conflict(endpoint: string): void
  headerMismatch(endpoint: string): void
}

/** Reports to the operator, in the log and in the metrics. */
export function reportRemarks(remarks: readonly Remark[], log: Logger, count: RemarkCounts): void {
  for (const { level, message, fields, counts } of remarks) {
    if (counts !== undefined) count[counts](fields.endpoint ?? '')
    log[level](fields, message)
  }
}
