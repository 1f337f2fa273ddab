import { describe, expect, it } from 'vitest'
import { normalise } from '../../src/provider/normalise.js'
import { CREATED_AT, envelope, RECEIVED_AT, receive } from './wire.js'

const DAY_MS = 86_400_000

function at(createdAt: unknown) {
  return receive({ ...envelope('payment.succeeded'), createdAt })
}

describe('an id', () => {
  it.each([
    ['a quote', "evt_'; drop table events; --"],
    ['markup', '<script>evt</script>'],
    ['a path', '../../etc/passwd'],
    ['no prefix', '1'],
    ['emoji', 'evt_😀'],
    ['255 characters', 'e'.repeat(255)],
  ])('may be any text: %s', (_, id) => {
    expect(receive({ ...envelope('payment.succeeded'), id })).toMatchObject({ ok: true, event: { id } })
  })

  it.each([
    ['missing', undefined],
    ['null', null],
    ['empty', ''],
    ['a number', 7],
    ['an object', { id: 'evt_1' }],
    ['of 256 characters', 'e'.repeat(256)],
    ['of 12 kB', 'e'.repeat(12_000)],
    ['with a NUL', 'evt_\u0000'],
    ['with a line break', 'evt_\r\n1'],
    ['with a DEL', 'evt_\u007f'],
    ['with a C1 control', 'evt_\u0085'],
    ['with half a surrogate pair', 'evt_\ud83d'],
    ['with a pair the wrong way round', 'evt_\ude00\ud83d'],
  ])('is not usable when it is %s', (_, id) => {
    expect(receive({ ...envelope('payment.succeeded'), id })).toEqual({
      ok: false,
      reason: 'id_invalid',
      id: null,
    })
  })
})

describe('createdAt', () => {
  it('is read as an instant, under either name', () => {
    const { createdAt, ...rest } = envelope('payment.succeeded')
    expect(receive({ ...rest, created_at: createdAt })).toMatchObject({
      event: { createdAt: Date.parse(CREATED_AT) },
    })
    expect(at('2026-03-01T13:00:00+01:00')).toMatchObject({ event: { createdAt: Date.parse(CREATED_AT) } })
  })

  it.each([undefined, null, '', 'today', 1772366400, '2026-02-30T00:00:00Z', ['2026-03-01T12:00:00Z']])(
    'is invalid as %j',
    (createdAt) => {
      expect(at(createdAt)).toEqual({ ok: false, reason: 'created_at_invalid', id: 'evt_1' })
    },
  )

  it('may lie a day ahead of receipt, and no more', () => {
    expect(at(new Date(RECEIVED_AT + DAY_MS).toISOString())).toMatchObject({ ok: true })
    expect(at(new Date(RECEIVED_AT + DAY_MS + 1).toISOString())).toEqual({
      ok: false,
      reason: 'created_at_in_future',
      id: 'evt_1',
    })
  })

  it('may lie any time back', () => {
    expect(at('2001-01-01T00:00:00Z')).toMatchObject({ ok: true })
  })
})

describe('livemode', () => {
  const mode = (livemode: unknown, environment: 'live' | 'sandbox') =>
    normalise(Buffer.from(JSON.stringify({ ...envelope('payment.succeeded'), livemode })), {
      environment,
      receivedAt: RECEIVED_AT,
    })

  it.each([
    [true, 'sandbox'],
    [false, 'live'],
  ] as const)('%s does not go with a %s endpoint', (livemode, environment) => {
    expect(mode(livemode, environment)).toEqual({ ok: false, reason: 'livemode_mismatch', id: 'evt_1' })
  })

  it.each([
    [true, 'live'],
    [false, 'sandbox'],
    [undefined, 'live'],
    [undefined, 'sandbox'],
    ['false', 'live'],
    [null, 'sandbox'],
  ] as const)('%s goes with a %s endpoint', (livemode, environment) => {
    expect(mode(livemode, environment)).toMatchObject({ ok: true })
  })
})

describe('the version of the interface', () => {
  it.each([
    [{ api_version: '2027-01' }, '2027-01'],
    [{ apiVersion: '2027-01' }, '2027-01'],
    [{ api_version: 3 }, null],
    [{ api_version: 'a\u0000' }, null],
    [{}, null],
  ])('of %j is %s', (shown, apiVersion) => {
    expect(receive({ ...envelope('payment.succeeded'), ...shown })).toMatchObject({
      ok: true,
      event: { apiVersion },
    })
  })
})

describe('a type', () => {
  it.each([
    ['subscription.paused', 'v3'],
    ['payment.exploded', 'v3'],
    ['checkout.session.opened', 'v3'],
    ['constructor.prototype', 'v3'],
    ['PAYMENT_EXPLODED', 'v2'],
    ['PAYMENT_SETTLED', 'v2'],
    ['__proto__', null],
    ['payment', null],
    ['Payment.Succeeded', null],
    ['payment_success', null],
    ['payment.', null],
    ['TYPE WITH SPACES', null],
    ['t'.repeat(255), null],
  ])('that is not in the vocabulary, %s, is kept under its own name', (type, generation) => {
    expect(receive(envelope(type, { id: 'pay_1' }))).toMatchObject({
      ok: true,
      event: { id: 'evt_1', subject: 'other', type, generation, customerId: null, productId: null },
    })
  })

  it.each([
    undefined,
    null,
    5,
    '',
    ['payment.succeeded'],
    'a\u0000b',
    '\ud800',
    't'.repeat(256),
    `a.${'b'.repeat(254)}`,
  ])('that can not be kept as text, %j, is unknown', (type) => {
    expect(receive(envelope(type))).toMatchObject({
      ok: true,
      event: { subject: 'other', type: 'unknown', generation: null },
    })
  })

  it('decides what the event is about, not the object in its data', () => {
    const data = { object: 'subscription', id: 'pay_1' }
    expect(receive(envelope('payment.succeeded', data))).toMatchObject({
      event: { subject: 'payment', paymentId: 'pay_1', subscriptionId: null },
    })
  })

  it.each([undefined, null, 'text', 5, [], [{ id: 'pay_1' }]])(
    'in the vocabulary shows nothing with data %j',
    (data) => {
      expect(receive({ ...envelope('payment.succeeded'), data })).toMatchObject({
        ok: true,
        event: { subject: 'payment', paymentId: null, customerId: null, railProof: null, metadata: {} },
      })
      expect(receive({ ...envelope('SUBSCRIPTION_RENEWED'), data })).toMatchObject({
        ok: true,
        event: { subject: 'subscription', subscriptionId: null, expiresAt: null, cycles: null },
      })
    },
  )
})
