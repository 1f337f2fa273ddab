import type { NormalizedEvent } from '../../src/provider/event.js'
import { normalise } from '../../src/provider/normalise.js'

export const CREATED_AT = '2026-03-01T12:00:00.000Z'
export const RECEIVED_AT = Date.parse('2026-03-01T12:00:05Z')

/** What becomes of a body received by a live endpoint: an object is written as JSON, text and bytes stay as they are. */
export function receive(body: object | string | Uint8Array) {
  const bytes =
    body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return normalise(bytes, { environment: 'live', receivedAt: RECEIVED_AT })
}

export function envelope(type: unknown, data: unknown = {}): Record<string, unknown> {
  return { id: 'evt_1', type, createdAt: CREATED_AT, data }
}

/** The event that `data` makes under `type`; fails the test if there is none. */
export function eventOf(type: string, data: unknown): NormalizedEvent {
  const result = receive(envelope(type, data))
  if (!result.ok) throw new Error(`quarantined: ${result.reason}`)
  return result.event
}
