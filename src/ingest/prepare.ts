import { createHash } from 'node:crypto'
import type { Normalized } from '../provider/event.js'
import { normalise } from '../provider/normalise.js'
import type { DeliveredEvent } from '../store/events.js'
import type { Delivery } from './delivery.js'

/** A delivery, read: everything that can be known of it without the store. */
export interface PreparedDelivery extends DeliveredEvent {
  readonly normalized: Normalized
}

export function prepare(delivery: Delivery): PreparedDelivery {
  const normalized = normalise(delivery.body, delivery)
  const bodySha256 = createHash('sha256').update(delivery.body).digest('hex')
  return {
    ...delivery,
    normalized,
    bodySha256,
    eventId: ownIdOf(normalized) ?? `sha256:${bodySha256}`,
  }
}

/** Null where the body holds no usable id. */
export function ownIdOf(normalized: Normalized): string | null {
  return normalized.ok ? normalized.event.id : normalized.id
}
