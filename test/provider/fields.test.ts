import { describe, expect, it } from 'vitest'
import { eventOf } from './wire.js'

const NOBODY = {
  email: null,
  name: null,
  communityId: null,
  communityUsername: null,
  messengerId: null,
  messengerUsername: null,
}

function paymentOf(data: object) {
  return eventOf('payment.succeeded', data)
}

describe('a field under both of its names', () => {
  it('counts in camelCase', () => {
    expect(paymentOf({ customerId: 'cus_1', customer_id: 'cus_2' })).toMatchObject({ customerId: 'cus_1' })
    expect(paymentOf({ customer_id: 'cus_2', customerId: 'cus_1' })).toMatchObject({ customerId: 'cus_1' })
  })

  it.each([null, '', 5, {}])('counts in snake_case where camelCase shows nothing but %j', (nothing) => {
    expect(paymentOf({ customerId: nothing, customer_id: 'cus_2' })).toMatchObject({ customerId: 'cus_2' })
    expect(paymentOf({ externalRef: nothing, external_ref: 'ref' })).toMatchObject({ externalRef: 'ref' })
  })
})

describe('every field of two words', () => {
  const END = '2030-01-02T00:00:00Z'
  const people = [
    ['customerEmail', { customer: { email: 'a' } }],
    ['customerName', { customer: { name: 'a' } }],
    ['customerCommunityId', { customer: { communityId: 'a' } }],
    ['customerCommunityUsername', { customer: { communityUsername: 'a' } }],
    ['customerMessengerId', { customer: { messengerId: 'a' } }],
    ['customerMessengerUsername', { customer: { messengerUsername: 'a' } }],
    ['customerId', { customerId: 'a' }],
  ] as const
  const details = [
    ['communityId', { customer: { communityId: 'a' } }],
    ['communityUsername', { customer: { communityUsername: 'a' } }],
    ['messengerId', { customer: { messengerId: 'a' } }],
    ['messengerUsername', { customer: { messengerUsername: 'a' } }],
    ['firstName', { customer: { name: 'a' } }],
    ['lastName', { customer: { name: 'a' } }],
  ] as const
  const subscriptionId = ['subscriptionId', { subscriptionId: 'a' }] as const
  const productId = ['productId', { productId: 'a' }] as const
  const externalRef = ['externalRef', { externalRef: 'a' }] as const
  const references = [subscriptionId, productId, externalRef]
  const within =
    (...path: readonly string[]) =>
    (fields: object) =>
      path.reduceRight<object>((inner, name) => ({ [name]: inner }), fields)

  const proofs = (rail: string, names: readonly string[]) =>
    names.map((name) => [name, { railProof: { rail } }] as const)
  const crypto = proofs('crypto', ['depositAddress', 'cryptoSettlementMode', 'txHash'])
  const decline = proofs('card', ['declineCode', 'declineCategory'])
  const end = { expiresAt: Date.parse(END) }
  const lastPayments = ['paymentId', 'lastPayment', 'lastPaymentId'] as const

  it.each([
    ['payment.succeeded', within(), 'a', [...people, ...references, ['paymentId', { paymentId: 'a' }]]],
    ['payment.succeeded', within('customer'), 'a', details],
    ['payment.succeeded', within(), 'CARD', proofs('card', ['paymentMethod'])],
    ['payment.failed', within(), 'a', [...crypto, ...decline]],
    ['checkout.succeeded', within('payment'), 'a', [...people, ...references]],
    ['checkout.succeeded', within('payment', 'customer'), 'a', details],
    ['subscription.renewed', within(), 'a', [...people, ...references]],
    ['subscription.renewed', within(), 'a', lastPayments.map((name) => [name, { paymentId: 'a' }] as const)],
    ['subscription.renewed', within(), true, [['cancelAtPeriodEnd', { cancelAtPeriodEnd: true }]]],
    [
      'subscription.renewed',
      within(),
      END,
      [['expiresAt', end] as const, ['currentCycleDueAt', end] as const],
    ],
    ['customer.updated', within(), 'a', [...people, ...details, externalRef]],
    ['customer.updated', within('customer'), 'a', details],
    ['PAYMENT_SUCCESS', within('payment'), 'a', [...people, subscriptionId, productId]],
    ['PAYMENT_FAILED', within('payment'), 'a', [...crypto, ...decline]],
    ['PAYMENT_SUCCESS', within('context'), 'a', [externalRef]],
    ['SUBSCRIPTION_RENEWED', within(), 'a', [['lastPayment', { paymentId: 'a' }]]],
    ['SUBSCRIPTION_RENEWED', within('customer'), 'a', details],
    ['SUBSCRIPTION_RENEWED', within('subscription'), 'a', [productId]],
    ['SUBSCRIPTION_RENEWED', within('subscription'), END, [['expiresAt', end]]],
    ['SUBSCRIPTION_RENEWED', within('context'), 'a', [externalRef]],
    ['payout.completed', within(), 'a', [['customerId', { customerId: 'a' }]]],
  ] as const)('of %s is read under both names: %#', (type, place, value, fields) => {
    for (const [camel, expected] of fields) {
      const snake = camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      for (const name of [camel, snake]) {
        expect(eventOf(type, place({ [name]: value })), name).toMatchObject(expected)
      }
    }
  })

  it.each([
    ['currentCycle', 'totalCycles'],
    ['current_cycle', 'total_cycles'],
    ['currentCycle', 'total_cycles'],
  ])('of a cycle is read as %s and %s', (current, total) => {
    expect(eventOf('subscription.renewed', { [current]: 2, [total]: 3 })).toMatchObject({
      cycles: { current: 2, total: 3 },
    })
  })

  it('shows a cycle in snake_case where camelCase shows none', () => {
    const cycles = (shown: object) => eventOf('subscription.renewed', { total_cycles: 3, ...shown })
    expect(cycles({ currentCycle: 'two', current_cycle: 2 })).toMatchObject({ cycles: { current: 2 } })
    expect(cycles({ currentCycle: null, current_cycle: 2 })).toMatchObject({ cycles: { current: 2 } })
    expect(cycles({ currentCycle: 2, current_cycle: null })).toMatchObject({ cycles: { current: 2 } })
    expect(cycles({ currentCycle: null, current_cycle: null })).toMatchObject({ cycles: { current: null } })
    expect(cycles({ currentCycle: null, current_cycle: 'two' })).toMatchObject({ cycles: null })
  })
})

describe('an instant under both of its names', () => {
  it.each([
    [{ expiresAt: '2030-01-02T00:00:00Z', expires_at: '2030-01-03T00:00:00Z' }, Date.UTC(2030, 0, 2)],
    [{ expiresAt: 'soon', expires_at: '2030-01-03T00:00:00Z' }, Date.UTC(2030, 0, 3)],
  ])('counts as any other field: %j', (shown, expiresAt) => {
    expect(eventOf('subscription.renewed', { id: 'sub_1', ...shown })).toMatchObject({ expiresAt })
  })
})

describe('text', () => {
  it.each([
    ['empty', ''],
    ['not text', 5],
    ['an object', { text: 'a' }],
    ['with a control character', 'a\u0000b'],
    ['with a line break', 'a\nb'],
    ['with half a surrogate pair', '\udc00'],
    ['over a thousand characters', 'a'.repeat(1001)],
  ])('that is %s counts as not shown', (_, text) => {
    expect(
      paymentOf({ customer: { id: 'cus_1', email: text, name: text }, external_ref: text }),
    ).toMatchObject({
      customerId: 'cus_1',
      customer: NOBODY,
      externalRef: null,
    })
    expect(eventOf('subscription.created', { id: 'sub_1', status: text })).toMatchObject({ status: null })
  })

  it.each(['a'.repeat(1000), "O'Brien", 'Zoë 😀', '<b>&amp;</b>', '../..'])(
    'is kept as it stands: %s',
    (text) => {
      expect(paymentOf({ customer_name: text })).toMatchObject({ customer: { name: text } })
    },
  )
})

describe('metadata', () => {
  const metadataOf = (metadata: unknown) => paymentOf({ metadata }).metadata

  it('keeps text and numbers, as text, and leaves out the rest', () => {
    const mixed = {
      text: 'a',
      empty: '',
      one: 1,
      half: 0.5,
      flag: true,
      none: null,
      list: ['a'],
      object: { a: 'b' },
    }
    expect(metadataOf(mixed)).toEqual({ text: 'a', empty: '', one: '1', half: '0.5' })
  })

  it('leaves out text and names that can not be kept', () => {
    expect(metadataOf({ a: '\u0000', '\u0001': 'b', c: '\ud800', d: 'd'.repeat(1001), e: 'e' })).toEqual({
      e: 'e',
    })
  })

  it('leaves out numbers that have lost digits on the way', () => {
    const body = '{"user":9007199254740993,"huge":1e999,"safe":9007199254740991}'
    expect(metadataOf(JSON.parse(body))).toEqual({ safe: '9007199254740991' })
  })

  it.each([null, 'text', 5, ['a'], undefined])('is empty as %j', (metadata) => {
    expect(metadataOf(metadata)).toEqual({})
  })
})

describe('the customer', () => {
  it.each([
    ['an object', { customer: { id: 'cus_1', email: 'ada@example.com' } }],
    ['an id beside flat details', { customer: 'cus_1', customer_email: 'ada@example.com' }],
    ['flat fields', { customer_id: 'cus_1', customerEmail: 'ada@example.com' }],
    [
      'an object without details beside them',
      { customer: { id: 'cus_1' }, customerEmail: 'ada@example.com' },
    ],
  ])('is read from %s', (_, data) => {
    for (const type of [
      'payment.succeeded',
      'subscription.created',
      'checkout.succeeded',
      'customer.updated',
    ]) {
      expect(eventOf(type, data)).toMatchObject({
        customerId: 'cus_1',
        customer: { ...NOBODY, email: 'ada@example.com' },
      })
    }
  })

  it('as an object counts before flat fields', () => {
    expect(paymentOf({ customer: { id: 'cus_1' }, customer_id: 'cus_2' })).toMatchObject({
      customerId: 'cus_1',
    })
  })

  it.each([
    [{ name: 'Ada King', firstName: 'Ada', lastName: 'Lovelace' }, 'Ada King'],
    [{ first_name: 'Ada', last_name: 'Lovelace' }, 'Ada Lovelace'],
    [{ firstName: 'Ada' }, 'Ada'],
    [{ lastName: 'Lovelace', firstName: null }, 'Lovelace'],
    [{}, null],
  ])('of %j has the name %s', (shown, name) => {
    expect(eventOf('customer.created', { id: 'cus_1', ...shown })).toMatchObject({ customer: { name } })
  })
})
