import { type Envelope, type ReceiptContext, readEnvelope, readEventId } from './envelope.js'
import type { Normalized, NormalizedEvent } from './event.js'
import { isUsableId } from './ids.js'
import { parseJsonBody } from './json.js'
import { normaliseV2 } from './normalise-v2.js'
import { normaliseV3 } from './normalise-v3.js'
import { otherEvent } from './other-event.js'

/**
 * Turns the exact bytes of an authentic delivery into one event of the canonical vocabulary, or says why
 * they can't be used. Never throws: one bad body must not take the rest of its batch along.
 *
 * Deterministic: the same bytes, environment and time of receipt give the same result. Every event of the
 * daemon passes here, which is why events are written out field by field below: spreading an object into
 * each took longer than all the rest.
 */
export function normalise(body: Uint8Array, context: ReceiptContext): Normalized {
  let id: string | null = null
  try {
    const json = parseJsonBody(body)
    // What such a body means is open, its id included.
    if (!json.ok) return { ok: false, reason: json.reason, id }

    id = readEventId(json.object)
    if (id === null) return { ok: false, reason: 'id_invalid', id }

    const reading = readEnvelope(id, json.object, context)
    if (!reading.ok) return { ok: false, reason: reading.reason, id }

    const event = toEvent(reading.envelope)
    return namesOnlyUsableIds(event) ? { ok: true, event } : { ok: false, reason: 'reference_id_invalid', id }
  } catch {
    // A bug of ours: the bytes are kept, and a mended program reads them again.
    return { ok: false, reason: 'normalizer_failed', id }
  }
}

function toEvent(envelope: Envelope): NormalizedEvent {
  switch (envelope.generation) {
    case 'v2':
      return normaliseV2(envelope)
    case 'v3':
      return normaliseV3(envelope)
    case null:
      return otherEvent(envelope)
    default:
      return envelope.generation satisfies never
  }
}

function namesOnlyUsableIds(event: NormalizedEvent): boolean {
  const named = [event.customerId, event.productId]
  if (event.subject === 'payment' || event.subject === 'subscription') {
    named.push(event.paymentId, event.subscriptionId)
  }
  return named.every((id) => id === null || isUsableId(id))
}
