import { describe, expect, it } from 'vitest'
import { buildSampleEvent, type SampleSpec } from '../../src/provider/sample-event.js'

const DAY_MS = 24 * 60 * 60 * 1000
const AT = Date.parse('2026-03-01T12:00:00Z')
const SPEC: Omit<SampleSpec, 'type'> = {
  eventId: 'evt_1',
  createdAt: AT,
  environment: 'live',
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

describe('a v3 sample', () => {
  const person = { object: 'customer', id: 'cus_1', email: 'customer@example.com' }
  const facts = {
    organization_id: 'org_sample',
    customer: person,
    product: { object: 'product', id: 'pro_1', name: 'Sample product' },
    external_ref: null,
    metadata: {},
  }
  const payment = {
    ...facts,
    object: 'payment',
    id: 'pay_1',
    status: 'authorized',
    subscription_id: 'sub_1',
    price_cents: '1900',
    currency: 'EUR',
    refunded_amount_cents: null,
    created_at: NOW,
    method: 'CARD',
  }

  it('has the whole envelope', () => {
    const { data: _, ...envelope } = sent('payment.authorized')
    expect(envelope).toEqual({
      id: 'evt_1',
      type: 'payment.authorized',
      createdAt: NOW,
      api_version: '3.0.0-beta',
      livemode: true,
    })
  })

  it('of a card payment has its every field', () => {
    expect(dataOf('payment.authorized')).toEqual(payment)
  })

  it('of a crypto payment shows its asset and where it was deposited', () => {
    const { method: _, ...shared } = payment
    expect(dataOf('payment.succeeded', { rail: 'crypto' })).toEqual({
      ...shared,
      status: 'received',
      method: 'CRYPTO',
      asset: { chain_id: 8453, symbol: 'USDC', decimals: 6, address: `0x${'ab'.repeat(20)}` },
      deposit_address: `0x${'cd'.repeat(20)}`,
    })
  })

  it('of a failed card payment was declined, and no other', () => {
    expect(dataOf('payment.failed')).toEqual({
      ...payment,
      status: 'declined',
      decline_code: 'insufficient_funds',
      decline_category: 'SOFT',
    })
    expect(dataOf('payment.failed', { rail: 'crypto' })).toMatchObject({ status: 'failed' })
    expect(dataOf('payment.failed', { rail: 'crypto' })).not.toHaveProperty('decline_code')
  })

  it.each([
    ['payment.succeeded', 'received'],
    ['payment.completed', 'completed'],
    ['payment.canceled', 'canceled'],
    ['payment.chargeback', 'completed'],
    ['payment.settled', 'completed'],
  ])('of %s leaves the payment %s', (type, status) => {
    expect(dataOf(type)).toEqual({ ...payment, status })
  })

  it.each([
    ['payment.refunded', 'refunded', 1900],
    ['payment.partially_refunded', 'partially_refunded', 950],
  ])('of %s tells how much was refunded', (type, status, cents) => {
    expect(dataOf(type)).toEqual({ ...payment, status, refunded_amount_cents: cents })
  })

  it('of a checkout is a session that holds its payment', () => {
    expect(dataOf('checkout.succeeded')).toEqual({
      ...facts,
      object: 'checkout_session',
      id: 'cs_sample',
      payment,
    })
  })

  it.each([
    ['subscription.created', 'active', 1, PERIOD_END],
    ['subscription.renewed', 'active', 2, PERIOD_END],
    ['subscription.updated', 'active', 2, PERIOD_END],
    ['subscription.past_due', 'past_due', 2, NOW],
    ['subscription.canceled', 'canceled', 2, NOW],
    ['subscription.expired', 'expired', 2, NOW],
  ])('of %s is %s in cycle %i, paid until %s', (type, status, cycle, expiresAt) => {
    expect(dataOf(type)).toEqual({
      ...facts,
      object: 'subscription',
      id: 'sub_1',
      status,
      current_cycle: cycle,
      total_cycles: null,
      cancel_at_period_end: false,
      expires_at: expiresAt,
      last_payment: 'pay_1',
    })
  })

  it.each([
    ['customer.updated', { ...person, name: 'Sample Customer' }],
    [
      'payment_method.attached',
      { object: 'payment_method', id: 'pm_sample', status: 'attached', customer: person },
    ],
    ['payout.failed', { object: 'payout', id: 'pout_sample', status: 'failed', amount_cents: 1900 }],
  ])('of %s has its every field', (type, data) => {
    expect(dataOf(type)).toEqual(data)
  })

  it('leaves empty what is not known', () => {
    const unknown = { ...facts, customer: null, product: null }
    expect(dataOf('payment.authorized', NOBODY)).toMatchObject({
      ...unknown,
      id: null,
      subscription_id: null,
    })
    expect(dataOf('subscription.created', NOBODY)).toMatchObject({ ...unknown, id: null, last_payment: null })
    expect(dataOf('customer.created', NOBODY)).toMatchObject({ id: null, email: null })
  })
})
