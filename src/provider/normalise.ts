import { customerIdOf, detailsOf } from './customer.js'
import { type Envelope, type ReceiptContext, readEnvelope } from './envelope.js'
import type { Generation, Normalized, NormalizedEvent, OtherEvent } from './event.js'
import { fieldsOf, NO_FIELDS, readMetadata } from './fields.js'
import { isProviderEventId, isReportedEventId, isUsableId } from './ids.js'
import { parseJsonBody } from './json.js'
import { V2_TYPES } from './normalise-v2.js'
import { REPORTED_TYPES, V3_TYPES } from './normalise-v3.js'

/** Types not listed here are unknown, even if their first word is known. */
const READERS = new Map([...V3_TYPES, ...V2_TYPES])
const REPORT_READERS = new Map([...V3_TYPES, ...REPORTED_TYPES])

const V3_TYPE = /^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$/
const V2_TYPE = /^[A-Z][A-Z0-9_]*$/

/**
 * Turns the exact bytes of an authentic delivery into one event of the canonical vocabulary, or says why
 * they can't be used. Never throws: one bad body must not fail the rest of its batch.
 *
 * Deterministic: the same bytes, environment and time of receipt give the same result. Every event passes here, so
 * events are written out field by field: no spreads, no lists, no functions created per event.
 */
export function normalise(body: Uint8Array, context: ReceiptContext): Normalized {
  let id: string | null = null
  try {
    const json = parseJsonBody(body)
    // The meaning of such a body is unclear, its id included.
    if (!json.ok) return { ok: false, reason: json.reason, id }

    const shown = json.object.id
    const isUsable = context.isReport ? isReportedEventId : isProviderEventId
    if (typeof shown !== 'string' || !isUsable(shown)) return { ok: false, reason: 'id_invalid', id }
    id = shown

    const envelope = readEnvelope(id, json.object, context)
    if (typeof envelope === 'string') return { ok: false, reason: envelope, id }

    const readers = context.isReport ? REPORT_READERS : READERS
    const read = readers.get(envelope.type) ?? otherEvent
    const event = read(envelope)
    return namesOnlyUsableIds(event) ? { ok: true, event } : { ok: false, reason: 'reference_id_invalid', id }
  } catch {
    // A bug of ours: the bytes are kept, and a fixed version reads them again.
    return { ok: false, reason: 'normalizer_failed', id }
  }
}

/**
 * An event without effect. Only its customer is read, so that it can be shown and erased with the customer's other
 * data; an id that can't be stored is dropped, since nothing depends on it.
 */
function otherEvent(envelope: Envelope): OtherEvent {
  const type = isUsableId(envelope.type) ? envelope.type : 'unknown'
  const customerId = customerIdOf(fieldsOf(envelope.data))
  return {
    id: envelope.id,
    generation: generationOf(type),
    createdAt: envelope.createdAt,
    apiVersion: envelope.apiVersion,
    subject: 'other',
    type,
    customerId: isNullOrUsable(customerId) ? customerId : null,
    customer: detailsOf(NO_FIELDS, NO_FIELDS),
    productId: null,
    externalRef: null,
    metadata: readMetadata(null),
  }
}

function generationOf(type: string): Generation | null {
  if (V3_TYPE.test(type)) return 'v3'
  return V2_TYPE.test(type) ? 'v2' : null
}

function namesOnlyUsableIds(event: NormalizedEvent): boolean {
  if (!isNullOrUsable(event.customerId) || !isNullOrUsable(event.productId)) return false
  if (event.subject !== 'payment' && event.subject !== 'subscription') return true
  return isNullOrUsable(event.paymentId) && isNullOrUsable(event.subscriptionId)
}

function isNullOrUsable(id: string | null): boolean {
  return id === null || isUsableId(id)
}
