import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CANONICAL_TYPE_OF_V2, WIRE_TYPES } from '../../src/provider/event-types.js'
import { normalise } from '../../src/provider/normalise.js'
import { buildSampleEvent, type SampleSpec } from '../../src/provider/sample-event.js'

const AT = Date.parse('2026-03-01T12:00:00Z')
const NOW = '2026-03-01T12:00:00.000Z'
const PERIOD_END = '2026-03-31T12:00:00.000Z'
const IDS = { customerId: 'cus_1', productId: 'pro_1', paymentId: 'my-payment', subscriptionId: 'sub_1' }
const NO_IDS = { customerId: null, productId: null, paymentId: null, subscriptionId: null }
const SPEC: Omit<SampleSpec, 'type'> = {
  eventId: 'evt_1',
  createdAt: AT,
  environment: 'live',
  ...IDS,
  rail: 'card',
}
const ALL = [...WIRE_TYPES.v2, ...WIRE_TYPES.v3]

function sent(type: string, over: Partial<SampleSpec> = {}) {
  return JSON.parse(buildSampleEvent({ ...SPEC, type, ...over }).body)
}

function received(spec: SampleSpec) {
  const { body } = buildSampleEvent(spec)
  const result = normalise(Buffer.from(body), { environment: spec.environment, receivedAt: AT })
  if (!result.ok) throw new Error(`quarantined: ${result.reason}`)
  return result.event
}

describe('a sample', () => {
  it.each(ALL)('of %s reads as the event it is about', (type) => {
    const event = received({ ...SPEC, type })
    const canonical: Readonly<Record<string, string>> = CANONICAL_TYPE_OF_V2
    expect(event).toMatchObject({ id: 'evt_1', createdAt: AT, type: canonical[type] ?? type })
    if (event.subject === 'payment') expect(event).toMatchObject(IDS)
    if (event.subject === 'subscription') {
      expect(event).toMatchObject({ ...IDS, expiresAt: expect.any(Number) })
    }
    if (event.subject === 'customer') expect(event.customerId).toBe('cus_1')
  })

  it.each(['card', 'crypto'] as const)('shows that it was paid by %s', (rail) => {
    for (const type of ALL) {
      const event = received({ ...SPEC, type, rail })
      if (event.subject === 'payment') expect(event.railProof).toEqual({ rail, strength: 3 })
    }
  })

  it.each(ALL)('of %s shows nothing where nothing is known', (type) => {
    const event = received({ ...SPEC, ...NO_IDS, type })
    expect(event).toMatchObject({ customerId: null, productId: null, customer: { email: null } })
    if (event.subject === 'payment' || event.subject === 'subscription') expect(event).toMatchObject(NO_IDS)
    expect(JSON.stringify(sent(type, NO_IDS))).not.toContain('@')
  })

  it('has the whole envelope of its generation', () => {
    const { data: _v2, ...legacy } = sent('CHECKOUT_SUCCESS')
    expect(legacy).toEqual({ id: 'evt_1', type: 'CHECKOUT_SUCCESS', createdAt: NOW })
    const { data: _v3, ...current } = sent('payment.authorized')
    const envelope = { id: 'evt_1', type: 'payment.authorized', createdAt: NOW, api_version: '3.0.0-beta' }
    expect(current).toEqual({ ...envelope, livemode: true })
    expect(sent('payment.authorized', { environment: 'sandbox' })).toMatchObject({ livemode: false })
  })
})

describe('a legacy sample', () => {
  const FIXTURES = join(import.meta.dirname, '../fixtures/v2')
  const crypto = { source: 'CRYPTO', txHash: `0x${'5a'.repeat(32)}`, vatAmountCents: null }

  /** The names of all fields, however deep; of a list, those of its first entry. */
  function fieldsOf(value: unknown): unknown {
    if (Array.isArray(value)) return value.slice(0, 1).map(fieldsOf)
    if (typeof value !== 'object' || value === null) return null
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, fieldsOf(inner)]))
  }

  it.each(WIRE_TYPES.v2)('of %s has every field of the documented one, and no other', (type) => {
    const documented = JSON.parse(readFileSync(join(FIXTURES, `${type}.json`), 'utf8'))
    // What a merchant put there is no part of the form.
    if (documented.data.context) documented.data.context.metadata = null
    const sample = sent(type).data
    // The documented one of a missed payment shows no last one.
    if (documented.data.lastPayment === null) sample.lastPayment = null
    expect(fieldsOf(sample)).toEqual(fieldsOf(documented.data))
  })

  it.each<[string, object, Partial<SampleSpec>?]>([
    ['CHECKOUT_INITIATED', { status: 'INITIATED', source: 'FIAT', txHash: null }],
    ['CHECKOUT_SUCCESS', { status: 'CHECKOUT_SUCCESS' }],
    ['CHECKOUT_FAILED', { status: 'CHECKOUT_FAILED' }],
    ['CHECKOUT_CANCELED', { status: 'CANCELED' }],
    ['PAYMENT_SUCCESS', { status: 'PAYMENT_SUCCESS', priceCents: '1900', totalAmountCents: 1900 }],
    ['PAYMENT_SUCCESS', { status: 'PAYMENT_SUCCESS', ...crypto }, { rail: 'crypto' }],
    ['PAYMENT_FAILED', { status: 'FAILED', refundedAmountCents: null }],
    ['PARTIAL_REFUNDED', { status: 'PARTIALLY_REFUNDED', refundedAmountCents: 950 }],
    ['PAYMENT_REFUNDED', { status: 'REFUNDED', refundedAmountCents: 1900 }],
    ['PAYMENT_CHARGEBACK', { status: 'CHARGEBACK' }],
  ])('of %s says what it is: %o', (type, payment, over) => {
    expect(sent(type, over).data).toMatchObject({ payment })
  })

  it.each([
    ['SUBSCRIPTION_CREATED', 'ACTIVE', PERIOD_END],
    ['SUBSCRIPTION_RENEWED', 'ACTIVE', PERIOD_END],
    ['SUBSCRIPTION_PAST_DUE', 'PAST_DUE', NOW],
    ['SUBSCRIPTION_EXPIRED', 'EXPIRED', NOW],
  ])('of %s is %s, paid until %s', (type, status, expiresAt) => {
    expect(sent(type).data).toMatchObject({ subscription: { id: 'sub_1', status, expiresAt } })
  })
})

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
    id: 'my-payment',
    subscription_id: 'sub_1',
    price_cents: '1900',
    currency: 'EUR',
    refunded_amount_cents: null,
    created_at: NOW,
    method: 'CARD',
  }
  const crypto = {
    method: 'CRYPTO',
    asset: { chain_id: 8453, symbol: 'USDC', decimals: 6, address: `0x${'ab'.repeat(20)}` },
    deposit_address: `0x${'cd'.repeat(20)}`,
  }
  const declined = { status: 'declined', decline_code: 'insufficient_funds', decline_category: 'SOFT' }
  const subscription = {
    ...facts,
    object: 'subscription',
    id: 'sub_1',
    current_cycle: 2,
    total_cycles: null,
    cancel_at_period_end: false,
    last_payment: 'my-payment',
  }
  const checkout = { ...facts, object: 'checkout_session', id: 'cs_sample' }

  it.each<[string, object, Partial<SampleSpec>?]>([
    ['payment.authorized', { ...payment, status: 'authorized' }],
    ['payment.succeeded', { ...payment, status: 'received' }],
    ['payment.succeeded', { ...payment, status: 'received', ...crypto }, { rail: 'crypto' }],
    ['payment.completed', { ...payment, status: 'completed' }],
    ['payment.failed', { ...payment, ...declined }],
    ['payment.failed', { ...payment, status: 'failed', ...crypto }, { rail: 'crypto' }],
    ['payment.canceled', { ...payment, status: 'canceled' }],
    ['payment.chargeback', { ...payment, status: 'completed' }],
    ['payment.settled', { ...payment, status: 'completed' }],
    ['payment.refunded', { ...payment, status: 'refunded', refunded_amount_cents: 1900 }],
    ['payment.partially_refunded', { ...payment, status: 'partially_refunded', refunded_amount_cents: 950 }],
    ['checkout.succeeded', { ...checkout, payment: { ...payment, status: 'authorized' } }],
    ['subscription.created', { ...subscription, status: 'active', current_cycle: 1, expires_at: PERIOD_END }],
    ['subscription.renewed', { ...subscription, status: 'active', expires_at: PERIOD_END }],
    ['subscription.updated', { ...subscription, status: 'active', expires_at: PERIOD_END }],
    ['subscription.past_due', { ...subscription, status: 'past_due', expires_at: NOW }],
    ['subscription.canceled', { ...subscription, status: 'canceled', expires_at: NOW }],
    ['subscription.expired', { ...subscription, status: 'expired', expires_at: NOW }],
    ['customer.updated', { ...person, name: 'Sample Customer' }],
    [
      'payment_method.attached',
      { object: 'payment_method', id: 'pm_sample', status: 'attached', customer: person },
    ],
    ['payout.failed', { object: 'payout', id: 'pout_sample', status: 'failed', amount_cents: 1900 }],
  ])('of %s has every field: %#', (type, data, over) => {
    expect(sent(type, over).data).toEqual(data)
  })
})

describe('the generation', () => {
  it.each([
    ['payment.succeeded', undefined, 'payment.succeeded'],
    ['PAYMENT_SUCCESS', undefined, 'PAYMENT_SUCCESS'],
    ['payment.succeeded', 'v2', 'PAYMENT_SUCCESS'],
    ['PAYMENT_SUCCESS', 'v3', 'payment.succeeded'],
    ['PAYMENT_SUCCESS', 'v2', 'PAYMENT_SUCCESS'],
    ['checkout.canceled', undefined, 'CHECKOUT_CANCELED'],
  ] as const)('of %s, asked for %s, makes it %s', (type, generation, event) => {
    const sample = buildSampleEvent({ ...SPEC, type, ...(generation && { generation }) })
    expect([sample.event, JSON.parse(sample.body).type]).toEqual([event, event])
  })

  it.each([
    ['payment.exploded', undefined],
    ['constructor', undefined],
    ['', undefined],
    ['payment.authorized', 'v2'],
    ['PAYMENT_SETTLED', 'v3'],
    ['checkout.canceled', 'v3'],
  ] as const)('that does not send %j (asked for %s) is wrong use', (type, generation) => {
    const message = `There is no event type ${JSON.stringify(type)}.`
    expect(() => buildSampleEvent({ ...SPEC, type, ...(generation && { generation }) })).toThrow(
      expect.objectContaining({ code: 'usage', message }),
    )
  })
})
