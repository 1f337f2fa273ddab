import { describe, expect, it } from 'vitest'
import { buildSampleEvent, type SampleSpec } from '../../src/provider/sample-event.js'

const DAY_MS = 24 * 60 * 60 * 1000
const AT = Date.parse('2026-03-01T12:00:00Z')
const SPEC: Omit<SampleSpec, 'type'> = {
  eventId: 'evt_1',
  createdAt: AT,
  environment: 'sandbox',
  customerId: 'cus_1',
  productId: 'pro_1',
  paymentId: 'pay_1',
  subscriptionId: 'sub_1',
  rail: 'card',
}
const NOBODY = { customerId: null, productId: null, paymentId: null, subscriptionId: null }
const NOW = '2026-03-01T12:00:00.000Z'
const PERIOD_END = new Date(AT + 30 * DAY_MS).toISOString()

function sent(type: string, over: Partial<SampleSpec> = {}) {
  return JSON.parse(buildSampleEvent({ ...SPEC, type, ...over }).body)
}

function dataOf(type: string, over: Partial<SampleSpec> = {}) {
  return sent(type, over).data
}

describe('a legacy sample', () => {
  const payment = {
    id: 'pay_1',
    status: 'CHECKOUT_SUCCESS',
    subscriptionId: 'sub_1',
    productId: 'pro_1',
    valueUsd: '1900',
    priceCents: '1900',
    currency: 'EUR',
    vatAmountCents: 0,
    totalAmountCents: 1900,
    refundedAmountCents: null,
    txHash: null,
    source: 'FIAT',
    customerId: 'cus_1',
    customerEmail: 'customer@example.com',
    customerCommunityId: null,
    customerMessengerId: null,
    customerCommunityUsername: null,
    customerMessengerUsername: null,
  }
  const context = { externalRef: null, metadata: null, successUrl: null, cancelUrl: null }

  it('has the whole envelope', () => {
    const { data: _, ...envelope } = sent('CHECKOUT_SUCCESS')
    expect(envelope).toEqual({ id: 'evt_1', type: 'CHECKOUT_SUCCESS', createdAt: NOW })
  })

  it('of a card payment has its every field', () => {
    expect(dataOf('CHECKOUT_SUCCESS')).toEqual({ payment, context })
  })

  it('of a crypto payment shows its transaction, and nothing that cards alone have', () => {
    const crypto = { vatAmountCents: null, totalAmountCents: null, txHash: `0x${'5a'.repeat(32)}` }
    expect(dataOf('PAYMENT_SUCCESS', { rail: 'crypto' })).toEqual({
      payment: { ...payment, status: 'PAYMENT_SUCCESS', ...crypto, source: 'CRYPTO' },
      context,
    })
  })

  it.each([
    ['CHECKOUT_INITIATED', 'INITIATED', null],
    ['CHECKOUT_FAILED', 'CHECKOUT_FAILED', null],
    ['CHECKOUT_CANCELED', 'CANCELED', null],
    ['PAYMENT_SUCCESS', 'PAYMENT_SUCCESS', null],
    ['PAYMENT_FAILED', 'FAILED', null],
    ['PARTIAL_REFUNDED', 'PARTIALLY_REFUNDED', 950],
    ['PAYMENT_REFUNDED', 'REFUNDED', 1900],
    ['PAYMENT_CHARGEBACK', 'CHARGEBACK', null],
  ])('of %s leaves the payment %s, with %s cents refunded', (type, status, refundedAmountCents) => {
    expect(dataOf(type).payment).toEqual({ ...payment, status, refundedAmountCents })
  })

  it.each([
    ['SUBSCRIPTION_CREATED', 'ACTIVE', PERIOD_END],
    ['SUBSCRIPTION_RENEWED', 'ACTIVE', PERIOD_END],
    ['SUBSCRIPTION_PAST_DUE', 'PAST_DUE', NOW],
    ['SUBSCRIPTION_EXPIRED', 'EXPIRED', NOW],
  ])('of %s is %s, paid until %s', (type, status, expiresAt) => {
    expect(dataOf(type)).toEqual({
      subscription: { id: 'sub_1', status, productId: 'pro_1', expiresAt },
      lastPayment: {
        id: 'pay_1',
        status: 'PAYMENT_SUCCESS',
        priceCents: '1900',
        currency: 'EUR',
        createdAt: NOW,
      },
      customer: {
        id: 'cus_1',
        email: 'customer@example.com',
        communityId: null,
        messengerId: null,
        communityUsername: null,
        messengerUsername: null,
      },
      context: { externalRef: null, metadata: null },
    })
  })

  const settled = {
    id: 'pay_1',
    payoutId: 'pout_sample',
    productId: 'pro_1',
    subscriptionId: 'sub_1',
    priceCents: '1900',
    currency: 'EUR',
    grossAmountCents: 1900,
    merchantNetCents: 1900,
    customerId: 'cus_1',
    customerEmail: 'customer@example.com',
    customerCommunityId: null,
    customerMessengerId: null,
    externalRef: null,
  }

  it('of a payout lists the payout and its payment', () => {
    expect(dataOf('PAYMENT_SETTLED')).toEqual({
      payouts: [{ id: 'pout_sample', payoutAmountCents: 1900, currency: 'EUR', paidOutAt: NOW }],
      payments: [settled],
    })
  })

  it('leaves empty what is not known', () => {
    expect(dataOf('CHECKOUT_INITIATED', NOBODY).payment).toMatchObject({
      customerId: null,
      customerEmail: null,
    })
    expect(dataOf('SUBSCRIPTION_CREATED', NOBODY)).toMatchObject({
      lastPayment: null,
      customer: { id: null, email: null },
    })
    expect(dataOf('PAYMENT_SETTLED', NOBODY).payments).toMatchObject([{ id: null, customerEmail: null }])
  })
})
