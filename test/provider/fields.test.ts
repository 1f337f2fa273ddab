import { describe, expect, it } from 'vitest'
import { WIRE_TYPES } from '../../src/provider/event-types.js'
import { eventOf } from './wire.js'

const NOBODY = {
  email: null,
  name: null,
  communityId: null,
  communityUsername: null,
  messengerId: null,
  messengerUsername: null,
}

const paymentOf = (data: object) => eventOf('payment.succeeded', data)
const checkoutOf = (data: object) => eventOf('checkout.succeeded', data)
const renewalOf = (data: object) => eventOf('subscription.renewed', data)

const END = '2030-01-02T00:00:00Z'
const LATER = '2030-01-03T00:00:00Z'

describe('every field of two words', () => {
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
  const paymentIds = ['payment', 'paymentId', 'lastPayment', 'lastPaymentId'] as const
  const payments = paymentIds.map((name) => [name, { paymentId: 'a' }] as const)
  const ends = [['expiresAt', end] as const, ['currentCycleDueAt', end] as const]

  it.each([
    ['payment.succeeded', within(), 'a', [...people, ...references, ['paymentId', { paymentId: 'a' }]]],
    ['payment.succeeded', within('customer'), 'a', details],
    ['payment.succeeded', within(), 'CARD', proofs('card', ['paymentMethod'])],
    ['payment.failed', within(), 'a', [...crypto, ...decline]],
    ['checkout.succeeded', within('payment'), 'a', [...people, ...references]],
    ['checkout.succeeded', within('payment', 'customer'), 'a', details],
    ['subscription.renewed', within(), 'a', [...people, ...references, ...payments]],
    ['subscription.renewed', within(), true, [['cancelAtPeriodEnd', { cancelAtPeriodEnd: true }]]],
    ['subscription.renewed', within(), END, ends],
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

  it.each<[object, object]>([
    [{ customerId: 'cus_1', customer_id: 'cus_2' }, { customerId: 'cus_1' }],
    [{ customer_id: 'cus_2', customerId: 'cus_1' }, { customerId: 'cus_1' }],
    ...[null, '', 5, {}].map((nothing): [object, object] => [
      { customerId: nothing, customer_id: 'cus_2' },
      { customerId: 'cus_2' },
    ]),
    [{ externalRef: '', external_ref: 'ref' }, { externalRef: 'ref' }],
    [{ expiresAt: END, expires_at: LATER }, { expiresAt: Date.parse(END) }],
    [{ expiresAt: 'soon', expires_at: LATER }, { expiresAt: Date.parse(LATER) }],
    [{ totalCycles: null, currentCycle: 'two', current_cycle: 2 }, { cycles: { current: 2, total: null } }],
    [{ total_cycles: 3, currentCycle: null, current_cycle: 2 }, { cycles: { current: 2, total: 3 } }],
  ])('counts in camelCase, unless that shows nothing: %j', (data, expected) => {
    expect(renewalOf(data)).toMatchObject(expected)
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
    const data = { customer: { id: 'cus_1', email: text, name: text }, external_ref: text, status: text }
    const shown = { customerId: 'cus_1', customer: NOBODY, externalRef: null, status: null }
    expect(renewalOf(data)).toMatchObject(shown)
  })

  it.each(['a'.repeat(1000), "O'Brien", 'Zoë 😀', '<b>&amp;</b>', '../..'])(
    'is kept as it stands: %s',
    (text) => {
      expect(paymentOf({ customer_name: text })).toMatchObject({ customer: { name: text } })
    },
  )
})

describe('metadata', () => {
  const huge = JSON.parse('{"user":9007199254740993,"huge":1e999,"safe":9007199254740991}')

  it.each([
    [
      'text and numbers, as text',
      { text: 'a', empty: '', half: 0.5, flag: true, none: null, list: ['a'], object: { a: 'b' } },
      { text: 'a', empty: '', half: '0.5' },
    ],
    [
      'no text or name that cannot be kept',
      { a: '\u0000', '\u0001': 'b', c: '\ud800', d: 'd'.repeat(1001), e: 'e' },
      { e: 'e' },
    ],
    ['no numbers that have lost digits on the way', huge, { safe: '9007199254740991' }],
    ['nothing of what is no object', ['a'], {}],
    ['nothing of nothing', null, {}],
  ])('keeps %s', (_what, metadata, kept) => {
    expect(paymentOf({ metadata }).metadata).toEqual(kept)
  })

  it('is kept up to its first 64 entries, so that no event holds up the others', () => {
    const metadata = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`key_${i}`, `value_${i}`]))
    const kept = paymentOf({ metadata }).metadata
    expect([Object.keys(kept).length, kept.key_63]).toEqual([64, 'value_63'])
  })
})

describe('the customer', () => {
  it.each([
    { customer: { id: 'cus_1', email: 'ada@example.com' }, customer_email: 'bob@example.com' },
    { customer: 'cus_1', customer_email: 'ada@example.com' },
    { customer_id: 'cus_1', customerEmail: 'ada@example.com' },
    { customer: { id: 'cus_1' }, customer_id: 'cus_2', customerEmail: 'ada@example.com' },
  ])('is read from %j', (data) => {
    for (const type of [
      'payment.succeeded',
      'subscription.created',
      'checkout.succeeded',
      'customer.updated',
    ]) {
      const customer = { ...NOBODY, email: 'ada@example.com' }
      expect(eventOf(type, data)).toMatchObject({ customerId: 'cus_1', customer })
    }
  })

  it('of a customer event is the one that the data is about', () => {
    expect(eventOf('customer.updated', { id: 'cus_1', customer_id: 'cus_2' })).toMatchObject({
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

describe('a checkout', () => {
  it.each([
    [{ id: 'pay_1', payment: 'pay_2' }, 'pay_1'],
    [{ id: 'cs_1', payment: 'pay_1' }, 'pay_1'],
    [{ id: 'cs_1', payment: { id: 'pay_1' } }, 'pay_1'],
    [{ id: 'cs_1', payment_id: '4711' }, '4711'],
    [{ id: 'cs_1' }, null],
  ])('with %j is about the payment %s', (data, paymentId) => {
    expect(checkoutOf(data)).toMatchObject({ paymentId })
  })

  const payment = {
    id: 'pay_1',
    method: 'CRYPTO',
    customer: { id: 'cus_1', email: 'ada@example.com' },
    product_id: 'pro_1',
    subscription: { id: 'sub_1' },
    external_ref: 'user_7',
    metadata: { plan: 'gold' },
  }
  const own = {
    customer_id: 'cus_2',
    product: 'pro_2',
    subscription_id: 'sub_2',
    method: 'CARD',
    externalRef: 'user_8',
    metadata: { plan: 'silver' },
  }

  it('shows what the payment within it shows, unless it shows its own', () => {
    expect(checkoutOf({ id: 'cs_1', payment })).toMatchObject({
      paymentId: 'pay_1',
      customerId: 'cus_1',
      customer: { email: 'ada@example.com' },
      productId: 'pro_1',
      subscriptionId: 'sub_1',
      railProof: { rail: 'crypto', strength: 3 },
      externalRef: 'user_7',
      metadata: { plan: 'gold' },
    })
    expect(checkoutOf({ id: 'cs_1', payment, ...own })).toMatchObject({
      customerId: 'cus_2',
      productId: 'pro_2',
      subscriptionId: 'sub_2',
      railProof: { rail: 'card', strength: 3 },
      externalRef: 'user_8',
      metadata: { plan: 'silver' },
    })
  })
})

describe('a payment event', () => {
  it.each([
    [{ id: '4711' }, '4711'],
    [{ id: 'pay_1', payment: 'pay_2' }, 'pay_1'],
    [{ payment: { id: 'pay_2' } }, 'pay_2'],
    [{}, null],
  ])('with %j is about %s', (data, paymentId) => {
    expect(paymentOf(data)).toMatchObject({ paymentId })
  })

  it('has no end of a paid period: its expires_at is a deadline for paying', () => {
    expect(paymentOf({ id: 'pay_1', expires_at: END })).not.toHaveProperty('expiresAt')
  })
})

describe('a subscription event', () => {
  it.each([
    [{ id: 'sub_1', subscription: 'sub_2' }, { subscriptionId: 'sub_1' }],
    [{ subscription: { id: 'sub_2' } }, { subscriptionId: 'sub_2' }],
    [{}, { subscriptionId: null, expiresAt: null, cycles: null, cancelAtPeriodEnd: null }],
    [{ last_payment: { id: 'pay_1' } }, { paymentId: 'pay_1' }],
    [{ payment: 'pay_1', last_payment: 'pay_2' }, { paymentId: 'pay_1' }],
    [{ currentCycleDueAt: END, expires_at: null }, { expiresAt: Date.parse(END) }],
    [{ expires_at: END, current_cycle_due_at: LATER }, { expiresAt: Date.parse(END) }],
    [{ expires_at: 'soon', current_cycle_due_at: END }, { expiresAt: Date.parse(END) }],
    [{ expires_at: 1775001600 }, { expiresAt: null }],
    [{ expires_at: [END] }, { expiresAt: null }],
    [{ current_cycle: 1, total_cycles: 3 }, { cycles: { current: 1, total: 3 } }],
    [{ currentCycle: 1, total_cycles: null }, { cycles: { current: 1, total: null } }],
    [{ current_cycle: null, totalCycles: null }, { cycles: { current: null, total: null } }],
    [{ current_cycle: 1 }, { cycles: null }],
    [{ total_cycles: null }, { cycles: null }],
    [{ current_cycle: 1, total_cycles: 'three' }, { cycles: null }],
    [{ current_cycle: 1.5, total_cycles: 3 }, { cycles: null }],
    [{ cancelAtPeriodEnd: false }, { cancelAtPeriodEnd: false }],
    [{ cancel_at_period_end: 'true' }, { cancelAtPeriodEnd: null }],
    [{ status: 'PAST_DUE' }, { status: 'past_due' }],
  ])('with %j shows %j', (data, shown) => {
    expect(renewalOf(data)).toMatchObject(shown)
  })
})

describe('the rail of a payment', () => {
  const card = (strength: number) => ({ rail: 'card', strength })
  const crypto = (strength: number) => ({ rail: 'crypto', strength })

  it.each([
    ['CARD', card(3)],
    ['WALLET_A', card(3)],
    ['wallet_b', card(3)],
    ['Crypto', crypto(3)],
    ['FIAT', null],
    ['__proto__', null],
    [{ type: 'CARD' }, null],
    [null, null],
  ])('is proved by the method %j as %j', (method, railProof) => {
    for (const field of ['method', 'payment_method', 'rail']) {
      expect(paymentOf({ [field]: method })).toMatchObject({ railProof })
    }
  })

  const all = { method: 'CRYPTO', asset: { symbol: 'USDC' }, decline_code: 'expired_card' }
  const noMethod = { ...all, method: null }
  it.each([
    [
      'the first method that says something',
      'payment.succeeded',
      { method: 'OTHER', rail: 'CRYPTO' },
      crypto(3),
    ],
    ['no source, a word of the legacy generation', 'payment.succeeded', { source: 'CRYPTO' }, null],
    ['a field of crypto', 'payment.succeeded', { asset: { symbol: 'USDC' } }, crypto(1)],
    ['a field of crypto within', 'checkout.succeeded', { payment: { tx_hash: '0x1' } }, crypto(1)],
    ['a decline within', 'checkout.succeeded', { payment: { decline_code: 'x' } }, card(1)],
    ['another field of crypto', 'payment.succeeded', { deposit: { expected: '1' } }, crypto(1)],
    [
      'no field that is empty',
      'payment.succeeded',
      { asset: null, deposit: '', txHash: 0, deposit_address: false },
      null,
    ],
    ['no decline that is empty', 'payment.failed', { decline_code: null, decline_category: '' }, null],
    ['a method before the type', 'payment.authorized', all, crypto(3)],
    ['the type before other fields', 'payment.authorized', noMethod, card(2)],
    ['crypto before a decline', 'payment.failed', noMethod, crypto(1)],
  ])('is proved by %s', (_by, type, data, railProof) => {
    expect(eventOf(type, data)).toMatchObject({ railProof })
  })

  it.each([
    [{ source: 'FIAT' }, card(3)],
    [{ source: 'crypto' }, crypto(3)],
    [{ source: 'CARD' }, null],
    [{ source: null, txHash: '0xabc' }, crypto(1)],
    [{ source: 'FIAT', txHash: '0xabc' }, card(3)],
    [{ source: null, txHash: null }, null],
  ])('of the legacy generation is proved by %j as %j', (payment, railProof) => {
    expect(eventOf('PAYMENT_SUCCESS', { payment })).toMatchObject({ railProof })
  })

  it('is proved by the types that the documents send for cards alone', () => {
    const proving = (types: readonly string[], data: object) =>
      types.filter((type) => {
        const event = eventOf(type, data)
        return event.subject === 'payment' && event.railProof !== null
      })
    expect(proving(WIRE_TYPES.v3, { id: 'pay_1' })).toEqual([
      'payment.authorized',
      'payment.canceled',
      'payment.settled',
    ])
    expect(proving(WIRE_TYPES.v2, { payment: { id: 'pay_1' } })).toEqual([
      'CHECKOUT_SUCCESS',
      'CHECKOUT_FAILED',
      'PARTIAL_REFUNDED',
      'PAYMENT_REFUNDED',
      'PAYMENT_CHARGEBACK',
    ])
  })
})
