import type { SampleSpec } from './sample-event.js'

const PERIOD_MS = 30 * 24 * 60 * 60 * 1000

/** The legacy payment status after each event. */
const PAYMENT_STATUS: Readonly<Record<string, string>> = {
  CHECKOUT_INITIATED: 'INITIATED',
  CHECKOUT_SUCCESS: 'CHECKOUT_SUCCESS',
  CHECKOUT_FAILED: 'CHECKOUT_FAILED',
  CHECKOUT_CANCELED: 'CANCELED',
  PAYMENT_SUCCESS: 'PAYMENT_SUCCESS',
  PAYMENT_FAILED: 'FAILED',
  PARTIAL_REFUNDED: 'PARTIALLY_REFUNDED',
  PAYMENT_REFUNDED: 'REFUNDED',
  PAYMENT_CHARGEBACK: 'CHARGEBACK',
}

const CONTEXT = { externalRef: null, metadata: null }

/** The `data` of a legacy event of this type. */
export function sampleV2(type: string, spec: SampleSpec): object {
  if (type === 'PAYMENT_SETTLED') return settlement(spec)
  return type.startsWith('SUBSCRIPTION_') ? subscription(type, spec) : payment(type, spec)
}

function payment(type: string, spec: SampleSpec): object {
  const isCrypto = spec.rail === 'crypto'
  return {
    payment: {
      id: spec.paymentId,
      status: PAYMENT_STATUS[type],
      subscriptionId: spec.subscriptionId,
      productId: spec.productId,
      valueUsd: '1900',
      priceCents: '1900',
      currency: 'USD',
      vatAmountCents: isCrypto ? null : 0,
      totalAmountCents: isCrypto ? null : 1900,
      refundedAmountCents: refundedCents(type),
      txHash: isCrypto ? '0x5a3c7e' : null,
      source: isCrypto ? 'CRYPTO' : 'FIAT',
      customerId: spec.customerId,
      customerEmail: spec.customerId === null ? null : 'customer@example.com',
      customerCommunityId: null,
      customerMessengerId: null,
      customerCommunityUsername: null,
      customerMessengerUsername: null,
    },
    context: { ...CONTEXT, successUrl: null, cancelUrl: null },
  }
}

function refundedCents(type: string): number | null {
  if (type === 'PAYMENT_REFUNDED') return 1900
  return type === 'PARTIAL_REFUNDED' ? 500 : null
}

function subscription(type: string, spec: SampleSpec): object {
  const createdAt = new Date(spec.createdAt).toISOString()
  return {
    subscription: {
      id: spec.subscriptionId,
      status: type === 'SUBSCRIPTION_EXPIRED' ? 'EXPIRED' : 'ACTIVE',
      productId: spec.productId,
      expiresAt: new Date(spec.createdAt + PERIOD_MS).toISOString(),
    },
    lastPayment:
      spec.paymentId === null
        ? null
        : { id: spec.paymentId, status: 'PAYMENT_SUCCESS', priceCents: '1900', currency: 'USD', createdAt },
    customer: {
      id: spec.customerId,
      email: spec.customerId === null ? null : 'customer@example.com',
      communityId: null,
      messengerId: null,
      communityUsername: null,
      messengerUsername: null,
    },
    context: CONTEXT,
  }
}

/** One event about many payments and payouts. */
function settlement(spec: SampleSpec): object {
  const paidOutAt = new Date(spec.createdAt).toISOString()
  return {
    payouts: [{ id: 'po_sample', payoutAmountCents: 1900, currency: 'USD', paidOutAt }],
    payments: [
      {
        id: spec.paymentId,
        payoutId: 'po_sample',
        productId: spec.productId,
        subscriptionId: spec.subscriptionId,
        priceCents: '1900',
        currency: 'USD',
        grossAmountCents: 1900,
        merchantNetCents: 1800,
        customerId: spec.customerId,
        customerEmail: null,
        customerCommunityId: null,
        customerMessengerId: null,
        externalRef: null,
      },
    ],
  }
}
