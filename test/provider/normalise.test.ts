import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { QUARANTINE_REASONS } from '../../src/provider/event.js'
import { normalise } from '../../src/provider/normalise.js'
import { buildSampleEvent, SAMPLE_TYPES } from '../../src/provider/sample-event.js'
import { CREATED_AT, envelope, RECEIVED_AT, receive } from './wire.js'

const context = { environment: 'live', receivedAt: RECEIVED_AT } as const

describe('a body that means nothing certain', () => {
  it.each([
    ['not_json', ''],
    ['not_json', '\ufeff{}'],
    ['not_utf8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['not_an_object', '[]'],
    [
      'nested_too_deep',
      JSON.stringify(envelope('x', 0)).replace('0}', `${'['.repeat(200_000)}${']'.repeat(200_000)}}`),
    ],
    ['duplicate_keys', '{"id":"evt_1","id":"evt_2"}'],
    [
      'duplicate_keys',
      JSON.stringify(envelope('payment.succeeded')).replace('{}', '{"id":"pay_1","id":"pay_2"}'),
    ],
  ])('is quarantined as %s, without an id', (reason, body) => {
    expect(receive(body)).toEqual({ ok: false, reason, id: null })
  })
})

describe('an id that an event names', () => {
  const BAD = ['x'.repeat(256), 'a\u0000', 'a\u007f', 'a\u0090', '\udc00']

  it.each([
    ['payment.succeeded', (id: string) => ({ id })],
    ['payment.succeeded', (id: string) => ({ payment_id: id })],
    ['payment.succeeded', (id: string) => ({ customer: { id } })],
    ['payment.succeeded', (id: string) => ({ customerId: id })],
    ['payment.succeeded', (id: string) => ({ product: { id } })],
    ['payment.succeeded', (id: string) => ({ subscription: id })],
    ['checkout.succeeded', (id: string) => ({ id: 'cs_1', payment: { id } })],
    ['checkout.succeeded', (id: string) => ({ payment: { id: 'pay_1', customer: id } })],
    ['subscription.created', (id: string) => ({ id })],
    ['subscription.created', (id: string) => ({ id: 'sub_1', last_payment: id })],
    ['customer.updated', (id: string) => ({ id })],
    ['PAYMENT_SUCCESS', (id: string) => ({ payment: { id } })],
    ['PAYMENT_SUCCESS', (id: string) => ({ payment: { id: 'pay_1', productId: id } })],
    ['SUBSCRIPTION_RENEWED', (id: string) => ({ subscription: { id } })],
    ['SUBSCRIPTION_RENEWED', (id: string) => ({ customer: { id } })],
  ])('quarantines %s when it can not be kept', (type, dataWith) => {
    for (const id of BAD) {
      expect(receive(envelope(type, dataWith(id)))).toEqual({
        ok: false,
        reason: 'reference_id_invalid',
        id: 'evt_1',
      })
    }
  })

  it.each([5, true, '', {}, [], { id: 5 }, { id: '' }, null])('counts as not shown when it is %j', (id) => {
    expect(
      receive(envelope('payment.succeeded', { id, customer: id, product: id, subscription: id })),
    ).toMatchObject({
      ok: true,
      event: { paymentId: null, customerId: null, productId: null, subscriptionId: null },
    })
  })

  it.each(['payment_method.attached', 'subscription.paused', 'PAYMENT_SETTLED', 'whatever'])(
    'does not quarantine %s, which nothing follows from',
    (type) => {
      expect(receive(envelope(type, { id: BAD[0], customer: BAD[1], product: BAD[2] }))).toMatchObject({
        ok: true,
        event: { subject: 'other', customerId: null },
      })
    },
  )
})

describe('a fault of the program', () => {
  it('is no reason to lose the event: it is quarantined under its id', () => {
    const faulty = {
      receivedAt: RECEIVED_AT,
      get environment(): 'live' {
        throw new Error('a fault')
      },
    }
    const body = Buffer.from(JSON.stringify({ ...envelope('payment.succeeded'), livemode: true }))
    expect(normalise(body, faulty)).toEqual({ ok: false, reason: 'normalizer_failed', id: 'evt_1' })
  })
})

describe('keys with a meaning to JavaScript', () => {
  it('are read as data or passed over, and pollute nothing', () => {
    const body = JSON.stringify(envelope('payment.succeeded', { id: 'pay_1', metadata: 'M', customer: 'C' }))
      .replace(
        '"M"',
        '{"__proto__":"a","constructor":"b","toString":"c","nested":{"__proto__":{"polluted":1}}}',
      )
      .replace('"C"', '{"__proto__":{"id":"cus_evil"},"constructor":{"prototype":{"polluted":1}}}')
    const result = receive(body)
    expect(result).toMatchObject({ ok: true, event: { paymentId: 'pay_1', customerId: null } })
    const metadata = result.ok ? result.event.metadata : {}
    expect(Object.entries(metadata)).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
      ['toString', 'c'],
    ])
    expect(Object.getPrototypeOf(metadata)).toBeNull()
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })
})

describe('normalising', () => {
  const FIELDS = [
    ...[
      'id',
      'payment',
      'payment_id',
      'paymentId',
      'last_payment',
      'subscription',
      'subscriptionId',
      'product',
    ],
    ...[
      'customer',
      'customer_id',
      'customer_email',
      'metadata',
      'context',
      'asset',
      'method',
      'source',
      'status',
    ],
    ...[
      'current_cycle',
      'total_cycles',
      'expires_at',
      'externalRef',
      'lastPayment',
      '__proto__',
      'constructor',
    ],
  ]
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue({ maxDepth: 2 }),
      tie('object'),
      fc.string({ unit: 'binary' }),
    ),
    object: fc.dictionary(fc.constantFrom(...FIELDS), tie('any'), { maxKeys: 8 }),
  })).any
  const type = fc.oneof(fc.constantFrom(...SAMPLE_TYPES.v2, ...SAMPLE_TYPES.v3), fc.jsonValue())

  it('never throws and always decides, whatever bytes come', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((json) => Buffer.from(json)),
        ),
        (body) => {
          const result = normalise(body, context)
          if (!result.ok) expect(QUARANTINE_REASONS).toContain(result.reason)
          expect(result).not.toMatchObject({ reason: 'normalizer_failed' })
        },
      ),
    )
  })

  it('decides on any event of which some bytes have changed on the way', () => {
    const sample = fc.constantFrom(...SAMPLE_TYPES.v2, ...SAMPLE_TYPES.v3).map((type) => {
      const ids = { customerId: 'cus_1', productId: 'pro_1', paymentId: 'pay_1', subscriptionId: 'sub_1' }
      const told = { eventId: 'evt_1', createdAt: Date.parse(CREATED_AT), rail: 'card', ...ids } as const
      return Buffer.from(buildSampleEvent({ type, environment: 'live', ...told }).body)
    })
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 3 }),
      fc
        .constantFrom('"', '\\', '{', '}', '[', ']', ':', ',', 'null', '1e999', '\ufeff', '"a":1,', '\\ud800')
        .map((text) => Buffer.from(text)),
    )
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 3 }), piece), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(sample, changes, (body, changes) => {
        const changed = changes.reduce((bytes, [place, removed, added]) => {
          const at = place % (bytes.length + 1)
          return Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)])
        }, body)
        const result = receive(changed)
        if (result.ok) expect(JSON.parse(changed.toString())).toMatchObject({ id: result.event.id })
        else expect(QUARANTINE_REASONS).toContain(result.reason)
        expect(result).not.toMatchObject({ reason: 'normalizer_failed' })
      }),
      { numRuns: 1000 },
    )
  })

  it('makes an event, or refuses an id, out of any data under any type', () => {
    fc.assert(
      fc.property(type, value, (type, data) => {
        const result = receive(envelope(type, data))
        if (!result.ok) expect(result.reason).toBe('reference_id_invalid')
        else expect(result.event).toMatchObject({ id: 'evt_1', createdAt: Date.parse(CREATED_AT) })
      }),
      { numRuns: 500 },
    )
  })

  it('makes events that survive being written as JSON and read', () => {
    fc.assert(
      fc.property(type, value, (type, data) => {
        const result = receive(envelope(type, data))
        expect(JSON.parse(JSON.stringify(result))).toEqual(result)
      }),
    )
  })
})

describe('metadata without end', () => {
  it('is kept up to its first 64 entries, so that no event holds up the others', () => {
    const metadata = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`key_${i}`, `value_${i}`]))
    const data = { id: 'pay_1', customer: 'cus_1', product: 'pro_1', metadata }
    const body = { id: 'evt_1', type: 'payment.authorized', createdAt: '2026-01-01T00:00:00Z', data }
    const normalized = normalise(Buffer.from(JSON.stringify(body)), {
      environment: 'live',
      receivedAt: Date.UTC(2026, 0, 2),
    })
    expect(normalized.ok && Object.keys(normalized.event.metadata)).toHaveLength(64)
    expect(normalized.ok && normalized.event.metadata.key_63).toBe('value_63')
  })
})
