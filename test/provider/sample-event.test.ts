import { describe, expect, it } from 'vitest'
import { isLatchkeyError } from '../../src/errors.js'
import { CANONICAL_TYPE_OF_V2 } from '../../src/provider/event-types.js'
import { normalise } from '../../src/provider/normalise.js'
import { buildSampleEvent, SAMPLE_TYPES, type SampleSpec } from '../../src/provider/sample-event.js'

const AT = Date.parse('2026-03-01T12:00:00Z')
const SPEC: Omit<SampleSpec, 'type'> = {
  eventId: 'evt_1',
  createdAt: AT,
  environment: 'sandbox',
  customerId: 'cus_1',
  productId: 'pro_1',
  paymentId: 'my-payment',
  subscriptionId: 'sub_1',
  rail: 'card',
}
const ALL = [...SAMPLE_TYPES.v2, ...SAMPLE_TYPES.v3]

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
    if (event.subject === 'payment') {
      expect(event).toMatchObject({
        customerId: 'cus_1',
        productId: 'pro_1',
        paymentId: 'my-payment',
        subscriptionId: 'sub_1',
      })
    }
    if (event.subject === 'subscription') {
      expect(event).toMatchObject({
        customerId: 'cus_1',
        productId: 'pro_1',
        paymentId: 'my-payment',
        subscriptionId: 'sub_1',
        expiresAt: expect.any(Number),
      })
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
    const unknown = { customerId: null, productId: null, paymentId: null, subscriptionId: null }
    const event = received({ ...SPEC, ...unknown, type })
    expect(event).toMatchObject({ customerId: null, productId: null, customer: { email: null } })
    if (event.subject === 'payment' || event.subject === 'subscription') {
      expect(event).toMatchObject({ paymentId: null, subscriptionId: null })
    }
  })

  it.each([
    ['live', true],
    ['sandbox', false],
  ] as const)('for %s says so in v3', (environment, livemode) => {
    const body = (type: string) => JSON.parse(buildSampleEvent({ ...SPEC, type, environment }).body)
    expect(body('payment.succeeded')).toMatchObject({ livemode })
    expect(body('PAYMENT_SUCCESS')).not.toHaveProperty('livemode')
  })
})

describe('the generation', () => {
  it.each([
    ['payment.succeeded', undefined, 'payment.succeeded'],
    ['PAYMENT_SUCCESS', undefined, 'PAYMENT_SUCCESS'],
    ['payment.succeeded', 'v2', 'PAYMENT_SUCCESS'],
    ['PAYMENT_SUCCESS', 'v3', 'payment.succeeded'],
    ['checkout.succeeded', 'v2', 'CHECKOUT_SUCCESS'],
    ['SUBSCRIPTION_EXPIRED', 'v3', 'subscription.expired'],
    ['PAYMENT_SUCCESS', 'v2', 'PAYMENT_SUCCESS'],
    ['checkout.canceled', undefined, 'CHECKOUT_CANCELED'],
  ] as const)('of %s, asked for %s, makes it %s', (type, generation, event) => {
    const sample = buildSampleEvent({ ...SPEC, type, ...(generation && { generation }) })
    expect(sample.event).toBe(event)
    expect(JSON.parse(sample.body)).toMatchObject({ type: event })
  })

  it.each([
    ['payment.exploded', undefined],
    ['constructor', undefined],
    ['', undefined],
    ['payment.authorized', 'v2'],
    ['PAYMENT_SETTLED', 'v3'],
    ['CHECKOUT_FAILED', 'v3'],
    ['checkout.canceled', 'v3'],
  ] as const)('that does not send %j (asked for %s) is wrong use', (type, generation) => {
    try {
      buildSampleEvent({ ...SPEC, type, ...(generation && { generation }) })
      expect.unreachable()
    } catch (error) {
      expect(isLatchkeyError(error, 'usage')).toBe(true)
      expect(error).toMatchObject({ message: `There is no event type ${JSON.stringify(type)}.` })
    }
  })
})
