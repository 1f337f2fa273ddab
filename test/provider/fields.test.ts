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
