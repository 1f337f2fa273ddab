import type { V2EventType } from './event-types.js'
import {
  SAMPLE_CURRENCY,
  SAMPLE_TX_HASH,
  type SampleSubject,
  sampleEmail,
  samplePeriodEnd,
  samplePriceCents,
  sampleRefundedCents,
} from './sample-subject.js'
import {
  type LegacyPerson,
  legacyPaymentData,
  legacySettledData,
  legacySubscriptionData,
} from './wire-event.js'

/** The status that a payment or subscription shows in its event. */
const STATUS: Readonly<Record<V2EventType, string>> = {
  CHECKOUT_INITIATED: 'INITIATED',
  CHECKOUT_SUCCESS: 'CHECKOUT_SUCCESS',
  CHECKOUT_FAILED: 'CHECKOUT_FAILED',
  CHECKOUT_CANCELED: 'CANCELED',
  PAYMENT_SUCCESS: 'PAYMENT_SUCCESS',
  PAYMENT_FAILED: 'FAILED',
  PARTIAL_REFUNDED: 'PARTIALLY_REFUNDED',
  PAYMENT_REFUNDED: 'REFUNDED',
  PAYMENT_CHARGEBACK: 'CHARGEBACK',
  SUBSCRIPTION_CREATED: 'ACTIVE',
  SUBSCRIPTION_RENEWED: 'ACTIVE',
  SUBSCRIPTION_PAST_DUE: 'PAST_DUE',
  SUBSCRIPTION_EXPIRED: 'EXPIRED',
}

function statusIn(type: string): string | undefined {
  return (STATUS as Readonly<Record<string, string>>)[type]
}

/** The `data` of a legacy event of a documented type. */
export function sampleDataV2(type: string, subject: SampleSubject): object {
  const payment = paymentOf(type, subject)
  const { createdAt, productId, customerId, accounts, metadata } = subject
  const person: LegacyPerson = { id: customerId, email: sampleEmail(subject), ...accounts }
  const externalRef = subject.externalRef ?? null
  if (type === 'PAYMENT_SETTLED') {
    const payoutAmountCents = payment.priceCents
    const payout = { id: 'pout_sample', payoutAmountCents, paidOutAt: createdAt }
    return legacySettledData(payout, { ...payment, merchantNetCents: payoutAmountCents, externalRef }, person)
  }
  const context = { externalRef, metadata: metadata ?? null }
  if (!type.startsWith('SUBSCRIPTION_')) {
    return legacyPaymentData(payment, person, { ...context, successUrl: null, cancelUrl: null })
  }
  const { status, subscriptionId: id } = payment
  const expiresAt = samplePeriodEnd(subject, status === 'ACTIVE')
  const last = payment.id === null ? null : { ...payment, status: 'PAYMENT_SUCCESS', createdAt }
  return legacySubscriptionData({ id, status, productId, expiresAt }, last, person, context)
}

function paymentOf(type: string, subject: SampleSubject) {
  const isCard = subject.rail === 'card'
  const priceCents = samplePriceCents(subject)
  return {
    id: subject.paymentId,
    status: statusIn(type),
    subscriptionId: subject.subscriptionId,
    productId: subject.productId,
    valueUsd: String(priceCents),
    priceCents,
    currency: SAMPLE_CURRENCY,
    vatAmountCents: 0,
    grossAmountCents: priceCents,
    refundedAmountCents: sampleRefundedCents(type, subject),
    txHash: isCard ? null : SAMPLE_TX_HASH,
    source: isCard ? 'FIAT' : 'CRYPTO',
  } as const
}
