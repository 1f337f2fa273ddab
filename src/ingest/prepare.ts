import type { ManualEvent, Normalized } from '../provider/event.js'
import { parseManualEvent } from '../provider/event-form.js'
import { normalise } from '../provider/normalise.js'
import type { DeliveredEvent } from '../store/events.js'
import { sha256Of } from '../store/stored-form.js'
import type { ManualAct, RecordedDelivery, ToldReading } from './delivery.js'

/** A delivery, read: everything that can be known of it without the store. */
export interface PreparedDelivery extends DeliveredEvent {
  readonly normalized: Normalized
}

/** The endpoint that is written down for what was done by hand: it came through none. */
export const MANUAL_ENDPOINT = 'manual'

export function prepare(delivery: RecordedDelivery): PreparedDelivery {
  if (delivery.reading !== undefined) return prepareReading(delivery, delivery.reading)
  const normalized =
    delivery.headers === null ? readRecord(delivery.body) : normalise(delivery.body, delivery)
  const bodySha256 = sha256Of(delivery.body)
  return {
    ...delivery,
    normalized,
    bodySha256,
    eventId: ownIdOf(normalized) ?? `sha256:${bodySha256}`,
  }
}

/** Its bytes can't be read again: they are kept as they are told. */
function prepareReading(
  { body, reading: _, ...delivery }: RecordedDelivery,
  { event, ...came }: ToldReading,
): PreparedDelivery {
  return {
    ...delivery,
    ...came,
    body: body.byteLength === 0 ? null : body,
    eventId: event.id,
    normalized: { ok: true, event },
  }
}

function readRecord(body: Buffer): Normalized {
  const event = parseManualEvent(body)
  return event === null ? { ok: false, reason: 'normalizer_failed', id: null } : { ok: true, event }
}

/** What was done by hand, at the instant at which it is written. Its event is its body: nobody else wrote one. */
export function prepareAct(
  { environment, undated }: ManualAct,
  createdAt: number,
  now: number,
): PreparedDelivery {
  const event: ManualEvent = { ...undated, createdAt }
  const body = Buffer.from(JSON.stringify(event))
  return {
    environment,
    endpoint: MANUAL_ENDPOINT,
    body,
    bodySha256: sha256Of(body),
    headers: null,
    receivedAt: now,
    eventId: event.id,
    normalized: { ok: true, event },
  }
}

/** Null where the body holds no usable id. */
export function ownIdOf(normalized: Normalized): string | null {
  return normalized.ok ? normalized.event.id : normalized.id
}
