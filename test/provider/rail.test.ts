import { describe, expect, it } from 'vitest'
import { SAMPLE_TYPES } from '../../src/provider/sample-event.js'
import { eventOf } from './wire.js'

const card = (strength: number) => ({ rail: 'card', strength })
const crypto = (strength: number) => ({ rail: 'crypto', strength })

describe('the rail of a v3 payment', () => {
  it.each([
    ['CARD', card(3)],
    ['WALLET_A', card(3)],
    ['wallet_b', card(3)],
    ['Crypto', crypto(3)],
    ['FIAT', null],
    ['BANK', null],
    ['__proto__', null],
    [{ type: 'CARD' }, null],
    [null, null],
  ])('is proved by the method %j as %j', (method, railProof) => {
    for (const field of ['method', 'payment_method', 'paymentMethod', 'rail']) {
      expect(eventOf('payment.succeeded', { [field]: method })).toMatchObject({ railProof })
    }
  })

  it('is proved by the first method that says something', () => {
    expect(eventOf('payment.succeeded', { method: 'OTHER', rail: 'CRYPTO' })).toMatchObject({
      railProof: crypto(3),
    })
  })

  it('is not told by source, which is a word of the legacy generation', () => {
    expect(eventOf('payment.succeeded', { source: 'CRYPTO' })).toMatchObject({ railProof: null })
  })

  it.each([
    ['asset', { symbol: 'USDC' }],
    ['deposit', { expected: '1' }],
    ['deposit_address', '0xabc'],
    ['depositAddress', '0xabc'],
    ['crypto_settlement_mode', 'DIRECT'],
    ['txHash', '0xabc'],
  ])('is crypto when %s has a value', (field, value) => {
    expect(eventOf('payment.succeeded', { [field]: value })).toMatchObject({ railProof: crypto(1) })
    for (const nothing of [null, '', false, 0]) {
      expect(eventOf('payment.succeeded', { [field]: nothing })).toMatchObject({ railProof: null })
    }
  })

  it.each(['declineCode', 'decline_category'])('is card when %s has a value', (field) => {
    expect(eventOf('payment.failed', { [field]: 'SOFT' })).toMatchObject({ railProof: card(1) })
    expect(eventOf('payment.failed', { [field]: null })).toMatchObject({ railProof: null })
  })

  it('is proved by a method before the type, by the type before other fields, by crypto before a decline', () => {
    const all = { method: 'CRYPTO', asset: { symbol: 'USDC' }, decline_code: 'expired_card' }
    expect(eventOf('payment.authorized', all)).toMatchObject({ railProof: crypto(3) })
    expect(eventOf('payment.authorized', { ...all, method: null })).toMatchObject({ railProof: card(2) })
    expect(eventOf('payment.failed', { ...all, method: null })).toMatchObject({ railProof: crypto(1) })
  })
})

describe('the type of an event', () => {
  const proving = (types: readonly string[], data: object) =>
    types.filter((type) => {
      const event = eventOf(type, data)
      return event.subject === 'payment' && event.railProof !== null
    })

  it('proves a card where the documents send it for cards alone', () => {
    expect(proving(SAMPLE_TYPES.v3, { id: 'pay_1' })).toEqual([
      'payment.authorized',
      'payment.canceled',
      'payment.settled',
    ])
    expect(proving(SAMPLE_TYPES.v2, { payment: { id: 'pay_1' } })).toEqual([
      'CHECKOUT_SUCCESS',
      'CHECKOUT_FAILED',
      'PARTIAL_REFUNDED',
      'PAYMENT_REFUNDED',
      'PAYMENT_CHARGEBACK',
    ])
    expect(eventOf('CHECKOUT_SUCCESS', { payment: { id: 'pay_1' } })).toMatchObject({ railProof: card(2) })
  })
})

describe('the rail of a v2 payment', () => {
  it.each([
    [{ source: 'FIAT' }, card(3)],
    [{ source: 'fiat' }, card(3)],
    [{ source: 'CRYPTO' }, crypto(3)],
    [{ source: 'CARD' }, null],
    [{ source: null, txHash: '0xabc' }, crypto(1)],
    [{ source: 'FIAT', txHash: '0xabc' }, card(3)],
    [{ source: null, txHash: null }, null],
  ])('of %j is proved as %j', (payment, railProof) => {
    expect(eventOf('PAYMENT_SUCCESS', { payment })).toMatchObject({ railProof })
  })
})
