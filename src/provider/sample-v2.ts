import { ACCOUNT_FACTS, type AccountFact, ofEach, PLATFORMS } from './accounts.js'
import { ofCustomer } from './customer.js'
import type { V2EventType } from './event-types.js'
import {
  isoTime,
  SAMPLE_CURRENCY,
  SAMPLE_TX_HASH,
  type SampleSubject,
  sampleEmail,
  samplePeriodEnd,
  samplePriceCents,
  sampleRefundedCents,
} from './sample-subject.js'

const USERNAMES = Object.values(PLATFORMS).map(({ username }) => username)

function accountsOf({ accounts = {} }: SampleSubject, nameOf: (fact: AccountFact) => string): object {
  return Object.fromEntries(ACCOUNT_FACTS.map((fact) => [nameOf(fact), accounts[fact] ?? null]))
}

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
  if (type === 'PAYMENT_SETTLED') return settledData(subject)
  return type.startsWith('SUBSCRIPTION_') ? subscriptionData(type, subject) : paymentData(type, subject)
}

function paymentData(type: string, subject: SampleSubject): object {
  const isCard = subject.rail === 'card'
  const price = samplePriceCents(subject)
  return {
    payment: {
      id: subject.paymentId,
      status: statusIn(type),
      subscriptionId: subject.subscriptionId,
      productId: subject.productId,
      valueUsd: String(price),
      priceCents: String(price),
      currency: SAMPLE_CURRENCY,
      vatAmountCents: isCard ? 0 : null,
      totalAmountCents: isCard ? price : null,
      refundedAmountCents: sampleRefundedCents(type, subject),
      txHash: isCard ? null : SAMPLE_TX_HASH,
      source: isCard ? 'FIAT' : 'CRYPTO',
      customerId: subject.customerId,
      customerEmail: sampleEmail(subject),
      ...accountsOf(subject, ofCustomer),
      ...ofEach(USERNAMES.map(ofCustomer), () => null),
    },
    context: { ...contextOf(subject), successUrl: null, cancelUrl: null },
  }
}

function subscriptionData(type: string, subject: SampleSubject): object {
  const status = statusIn(type)
  return {
    subscription: {
      id: subject.subscriptionId,
      status,
      productId: subject.productId,
      expiresAt: samplePeriodEnd(subject, status === 'ACTIVE'),
    },
    lastPayment: subject.paymentId && {
      id: subject.paymentId,
      status: 'PAYMENT_SUCCESS',
      priceCents: String(samplePriceCents(subject)),
      currency: SAMPLE_CURRENCY,
      createdAt: isoTime(subject.createdAt),
    },
    customer: {
      id: subject.customerId,
      email: sampleEmail(subject),
      ...accountsOf(subject, (fact) => fact),
      ...ofEach(USERNAMES, () => null),
    },
    context: contextOf(subject),
  }
}

function contextOf({ externalRef, metadata }: SampleSubject): object {
  return { externalRef: externalRef ?? null, metadata: metadata ?? null }
}

/** One payout of one payment; real events contain many of both. */
function settledData(subject: SampleSubject): object {
  const price = samplePriceCents(subject)
  const payout = {
    id: 'pout_sample',
    payoutAmountCents: price,
    currency: SAMPLE_CURRENCY,
    paidOutAt: isoTime(subject.createdAt),
  }
  const payment = {
    id: subject.paymentId,
    payoutId: payout.id,
    productId: subject.productId,
    subscriptionId: subject.subscriptionId,
    priceCents: String(price),
    currency: SAMPLE_CURRENCY,
    grossAmountCents: price,
    merchantNetCents: price,
    customerId: subject.customerId,
    customerEmail: sampleEmail(subject),
    ...accountsOf(subject, ofCustomer),
    externalRef: subject.externalRef ?? null,
  }
  return { payouts: [payout], payments: [payment] }
}
