import type { Environment, ProvenRail } from './event.js'

/** The subject of a sample. Null leaves a field empty, as the provider does while it does not know the value. */
export interface SampleSubject {
  readonly eventId: string
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly environment: Environment
  readonly customerId: string | null
  readonly productId: string | null
  readonly paymentId: string | null
  readonly subscriptionId: string | null
  readonly rail: ProvenRail
}

/* What the samples of both generations have in common: one customer, one product at one price. */

export const SAMPLE_EMAIL = 'customer@example.com'
export const SAMPLE_PRICE_CENTS = 1900
export const SAMPLE_CURRENCY = 'EUR'
export const SAMPLE_TX_HASH = `0x${'5a'.repeat(32)}`

const PERIOD_MS = 30 * 24 * 60 * 60 * 1000

export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

/** The end of the paid period: a month later while the subscription runs, else the time of the event. */
export function samplePeriodEnd(createdAt: number, isRunning: boolean): string {
  return isoTime(isRunning ? createdAt + PERIOD_MS : createdAt)
}

/** How much of a payment of the sample price has been refunded, by event type. */
export function sampleRefundedCents(type: string): number | null {
  if (type === 'payment.refunded' || type === 'PAYMENT_REFUNDED') return SAMPLE_PRICE_CENTS
  return type === 'payment.partially_refunded' || type === 'PARTIAL_REFUNDED' ? SAMPLE_PRICE_CENTS / 2 : null
}
