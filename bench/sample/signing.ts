import type { Delivery } from '../../src/ingest/delivery.js'
import { signBody } from '../../src/provider/signature.js'
import type { DatedEvent } from './cycles.js'

export const ENDPOINT = 'live'
export const SECRET = 'whsec_bench_0123456789abcdef0123456789abcdef'

/** An event as the daemon takes it in, signed at the instant at which it is received (epoch milliseconds). */
export function deliveryOf({ body, event }: DatedEvent, receivedAt: number): Delivery {
  const bytes = Buffer.from(body)
  const timestamp = String(Math.floor(receivedAt / 1000))
  return {
    endpoint: ENDPOINT,
    environment: 'live',
    body: bytes,
    headers: { event, timestamp, signature: signBody(SECRET, timestamp, bytes) },
    receivedAt,
  }
}
