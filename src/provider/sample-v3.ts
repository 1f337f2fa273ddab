import type { LegacyOnly, PaymentEventType, SubscriptionEventType } from './event-types.js'
import { formatInstant } from './instant.js'
import {
  SAMPLE_CURRENCY,
  type SampleSubject,
  sampleEmail,
  samplePeriodEnd,
  samplePriceCents,
  sampleRefundedCents,
} from './sample-subject.js'

/** The payment's status after an event. The documentation has none for a chargeback. */
const PAYMENT_STATUS: Readonly<Record<string, string>> = {
  'checkout.succeeded': 'authorized',
  'payment.authorized': 'authorized',
  'payment.succeeded': 'received',
  'payment.completed': 'completed',
  'payment.failed': 'failed',
  'payment.canceled': 'canceled',
  'payment.refunded': 'refunded',
  'payment.partially_refunded': 'partially_refunded',
  'payment.chargeback': 'completed',
  'payment.settled': 'completed',
} satisfies Record<Exclude<PaymentEventType, LegacyOnly>, string>

const SUBSCRIPTION_STATUS: Readonly<Record<string, string>> = {
  'subscription.created': 'active',
  'subscription.renewed': 'active',
  'subscription.updated': 'active',
  'subscription.past_due': 'past_due',
  'subscription.canceled': 'canceled',
  'subscription.expired': 'expired',
} satisfies Record<Exclude<SubscriptionEventType, LegacyOnly>, string>

/** The `data` of a v3 event of a documented type. */
export function sampleDataV3(type: string, subject: SampleSubject): object {
  const [resource, action] = type.split('.')
  switch (resource) {
    case 'checkout':
      return {
        ...common(subject),
        object: 'checkout_session',
        id: 'cs_sample',
        payment: paymentData(type, subject),
      }
    case 'payment':
      return paymentData(type, subject)
    case 'subscription':
      return subscriptionData(type, subject)
    case 'customer':
      return { ...customerOf(subject), name: 'Sample Customer' }
    case 'payment_method':
      return { object: 'payment_method', id: 'pm_sample', status: action, customer: customerOf(subject) }
    default:
      return { object: 'payout', id: 'pout_sample', status: action, amountCents: samplePriceCents(subject) }
  }
}

function common(subject: SampleSubject): object {
  return {
    organizationId: 'org_sample',
    customer: subject.customerId && customerOf(subject),
    product: subject.productId && { object: 'product', id: subject.productId, name: 'Sample product' },
    externalRef: subject.externalRef ?? null,
    metadata: subject.metadata ?? {},
  }
}

function customerOf(subject: SampleSubject): object {
  return { object: 'customer', id: subject.customerId, email: sampleEmail(subject) }
}

function paymentData(type: string, subject: SampleSubject): object {
  return {
    ...common(subject),
    object: 'payment',
    id: subject.paymentId,
    status: PAYMENT_STATUS[type],
    subscriptionId: subject.subscriptionId,
    priceCents: String(samplePriceCents(subject)),
    currency: SAMPLE_CURRENCY,
    refundedAmountCents: sampleRefundedCents(type, subject),
    createdAt: formatInstant(subject.createdAt),
    ...(subject.rail === 'card' ? cardData(type) : CRYPTO_DATA),
  }
}

function cardData(type: string): object {
  const decline = { status: 'declined', declineCode: 'insufficient_funds', declineCategory: 'SOFT' }
  return { method: 'CARD', ...(type === 'payment.failed' ? decline : {}) }
}

const CRYPTO_DATA = {
  method: 'CRYPTO',
  asset: { chainId: 8453, symbol: 'USDC', decimals: 6, address: `0x${'ab'.repeat(20)}` },
  depositAddress: `0x${'cd'.repeat(20)}`,
}

function subscriptionData(type: string, subject: SampleSubject): object {
  const status = SUBSCRIPTION_STATUS[type]
  const isAnnounced = subject.cancelAtPeriodEnd ?? false
  return {
    ...common(subject),
    object: 'subscription',
    id: subject.subscriptionId,
    status,
    currentCycle: type === 'subscription.created' ? 1 : 2,
    totalCycles: null,
    cancelAtPeriodEnd: isAnnounced,
    // A cancellation that waits for the end of the paid period comes before that end.
    expiresAt: formatInstant(
      samplePeriodEnd(subject, status === 'active' || (status === 'canceled' && isAnnounced)),
    ),
    lastPayment: subject.paymentId,
  }
}
