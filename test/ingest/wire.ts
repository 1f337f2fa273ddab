import { createHash } from 'node:crypto'
import type { Delivery } from '../../src/ingest/delivery.js'
import type { NormalizedEvent, RailProof } from '../../src/provider/event.js'

/** An event as the current generation would send it. */
export function bodyOf(event: NormalizedEvent): string {
  const { id, type, createdAt } = event
  return JSON.stringify({ id, type, createdAt: new Date(createdAt).toISOString(), data: dataOf(event) })
}

function dataOf(event: NormalizedEvent): object {
  const { customerId, productId } = event
  const facts = { customer: customerId && { id: customerId }, product: productId && { id: productId } }
  if (event.subject === 'payment') {
    const payment = { object: 'payment', payment_id: event.paymentId, subscription_id: event.subscriptionId }
    return { ...facts, ...payment, ...proofOf(event.railProof) }
  }
  if (event.subject !== 'subscription') return { ...facts, id: customerId }
  return {
    ...facts,
    object: 'subscription',
    id: event.subscriptionId,
    payment_id: event.paymentId,
    status: event.status,
    cancel_at_period_end: event.cancelAtPeriodEnd,
    expires_at: event.expiresAt === null ? null : new Date(event.expiresAt).toISOString(),
    ...(event.cycles && { current_cycle: event.cycles.current, total_cycles: event.cycles.total }),
  }
}

function proofOf(proof: RailProof | null): object {
  if (proof === null) return {}
  if (proof.strength === 1)
    return proof.rail === 'crypto' ? { tx_hash: '0x1' } : { decline_code: 'expired_card' }
  return { method: proof.rail.toUpperCase() }
}

/** A delivery whose signature has been checked. */
export function deliveryOf(body: string | Buffer, told: Partial<Delivery> = {}): Delivery {
  const bytes = Buffer.from(body)
  const signature = `v1=${createHash('sha256').update(bytes).digest('hex')}`
  return {
    endpoint: 'v3',
    environment: 'live',
    body: bytes,
    headers: { event: null, timestamp: '1767225600', signature },
    receivedAt: Date.UTC(2026, 5, 1),
    ...told,
  }
}

/** A payment of the `n`th customer, which gives access to `pro_1` for good. */
export function grantOf(n: number): Delivery {
  return deliveryOf(
    JSON.stringify({
      id: `evt_${n}`,
      type: 'payment.authorized',
      createdAt: '2026-01-01T00:00:00Z',
      data: { id: `pay_${n}`, customer: `cus_${n}`, product: 'pro_1', method: 'CARD' },
    }),
  )
}
