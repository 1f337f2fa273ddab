import type { Accounts } from './accounts.js'
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
  readonly email?: string | undefined
  /** Accounts on the platforms; only the legacy generation names them. */
  readonly accounts?: Accounts
  readonly externalRef?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Epoch milliseconds: when the paid period of a subscription ends. */
  readonly periodEnd?: number | undefined
  readonly cancelAtPeriodEnd?: boolean | undefined
  readonly priceCents?: number | undefined
}

/* What the samples of both generations have in common: one customer, one product at one price. */

const EMAIL = 'customer@example.com'
const PRICE_CENTS = 1900
export const SAMPLE_CURRENCY = 'EUR'
export const SAMPLE_TX_HASH = `0x${'5a'.repeat(32)}`

const PERIOD_MS = 30 * 24 * 60 * 60 * 1000

export function sampleEmail({ customerId, email = EMAIL }: SampleSubject): string | null {
  return customerId && email
}

export function samplePriceCents({ priceCents = PRICE_CENTS }: SampleSubject): number {
  return priceCents
}

/** The end of the paid period, in epoch milliseconds: a month later while the subscription runs, else the time of the event. */
export function samplePeriodEnd({ createdAt, periodEnd }: SampleSubject, isRunning: boolean): number {
  return periodEnd ?? (isRunning ? createdAt + PERIOD_MS : createdAt)
}

/** How much of the payment has been refunded, by event type. */
export function sampleRefundedCents(type: string, subject: SampleSubject): number | null {
  const price = samplePriceCents(subject)
  if (type === 'payment.refunded' || type === 'PAYMENT_REFUNDED') return price
  const isPartly = type === 'payment.partially_refunded' || type === 'PARTIAL_REFUNDED'
  return isPartly ? Math.floor(price / 2) : null
}
