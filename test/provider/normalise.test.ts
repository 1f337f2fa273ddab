import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { QUARANTINE_REASONS } from '../../src/provider/event.js'
import { WIRE_TYPES } from '../../src/provider/event-types.js'
import { normalise } from '../../src/provider/normalise.js'
import { buildSampleEvent } from '../../src/provider/sample-event.js'
import { CREATED_AT, envelope, RECEIVED_AT, receive } from './wire.js'

const DAY_MS = 86_400_000

/** The envelope of a payment event with other members; undefined leaves one out. */
const receiveWith = (members: object, environment: 'live' | 'sandbox' = 'live') => {
  const body = Buffer.from(JSON.stringify({ ...envelope('payment.succeeded'), ...members }))
  return normalise(body, { environment, receivedAt: RECEIVED_AT })
}

describe('a body of 1 MiB', () => {
  const MIB = 1024 * 1024
  const EVENT = JSON.stringify({ ...envelope('payment.succeeded', { customer: 'cus_1' }) })
  const fill = (unit: string, rest = '') => unit.repeat(Math.floor((MIB - rest.length) / unit.length))
  const withMember = (before: string, unit: string, after: string) => {
    const [start, end] = [`{${before}`, `${after},${EVENT.slice(1)}`]
    return start + fill(unit, start + end) + end
  }
  const nested = (open: string, close: string, core: string) => {
    const depth = Math.floor((MIB - core.length) / (open.length + close.length))
    return open.repeat(depth) + core + close.repeat(depth)
  }

  it.each<[name: string, body: string, reason: string]>([
    ['opening objects', fill('{"a":'), 'nested_too_deep'],
    ['opening arrays', fill('['), 'nested_too_deep'],
    ['objects within one another', nested('{"a":', '}', '0'), 'nested_too_deep'],
    ['arrays within one another', nested('[', ']', ''), 'nested_too_deep'],
    ['one key again and again', `{${fill('"a":1,', '{"a":1}')}"a":1}`, 'duplicate_keys'],
    ['one empty key again and again', `{${fill('"":0,', '{"":0}')}"":0}`, 'duplicate_keys'],
    ['an unfinished text of backslashes', `{"a":"${fill('\\', '{"a":"')}`, 'not_json'],
    ['an id', EVENT.replace('evt_1', fill('e', EVENT)), 'id_invalid'],
    ['a time of zeros', EVENT.replace(CREATED_AT, fill('0', EVENT)), 'created_at_invalid'],
    ['a customer', EVENT.replace('cus_1', fill('c', EVENT)), 'reference_id_invalid'],
  ])('is quarantined for what it is: %s', (_, body, reason) => {
    expect(receive(body)).toMatchObject({ ok: false, reason })
  })

  it.each([
    ['escaped backslashes', withMember('"a":"', '\\\\', '"')],
    ['escaped quotes', withMember('"a":"', '\\"', '"')],
    ['escaped brackets', withMember('"a":"', '\\u007b', '"')],
    ['brackets and colons in a text', withMember('"a":"', '{[:', '"')],
    ['empty objects', withMember('"a":[', '{},', '0]')],
    ['digits', withMember('"a":', '9', '')],
    ['blanks', withMember('', ' \n', '"a":0')],
    ['a type of dots', EVENT.replace('payment.succeeded', fill('a.', EVENT))],
  ])('is an event all the same: %s', (_, body) => {
    expect(receive(body)).toMatchObject({ ok: true, event: { id: 'evt_1' } })
  })
})

describe('an id', () => {
  it.each(["evt_'; drop table events; --", '<script>', '../../etc/passwd', '1', 'evt_😀', 'e'.repeat(255)])(
    'may be any text: %s',
    (id) => {
      expect(receiveWith({ id })).toMatchObject({ ok: true, event: { id } })
    },
  )

  it.each([
    ['missing', undefined],
    ['null', null],
    ['empty', ''],
    ['a number', 7],
    ['an object', { id: 'evt_1' }],
    ['of 256 characters', 'e'.repeat(256)],
    ['with a NUL', 'evt_\u0000'],
    ['with a line break', 'evt_\r\n1'],
    ['with a DEL', 'evt_\u007f'],
    ['with a C1 control', 'evt_\u0085'],
    ['with half a surrogate pair', 'evt_\ud83d'],
    ['with a pair the wrong way round', 'evt_\ude00\ud83d'],
  ])('is not usable when it is %s', (_, id) => {
    expect(receiveWith({ id })).toEqual({ ok: false, reason: 'id_invalid', id: null })
  })
})

describe('a report of Latchkey itself', () => {
  const REPORT_ID = `rec_${'0a'.repeat(12)}`
  const report = (members: object, isReport = true) =>
    normalise(Buffer.from(JSON.stringify({ ...envelope('payment.succeeded'), id: REPORT_ID, ...members })), {
      environment: 'live',
      receivedAt: RECEIVED_AT,
      isReport,
    })

  it('is read as an event of the provider is, by an id that nothing from outside can have', () => {
    const sent = receiveWith({})
    expect(report({})).toEqual({ ok: true, event: { ...(sent.ok && sent.event), id: REPORT_ID } })
    expect(report({}, false)).toMatchObject({ ok: false, reason: 'id_invalid' })
  })

  it.each(['evt_1', 'rec_1', `rec_${'0A'.repeat(12)}`, `rec_${'0a'.repeat(13)}`])(
    'has no id like %s',
    (id) => {
      expect(report({ id })).toMatchObject({ ok: false, reason: 'id_invalid' })
    },
  )

  it.each([
    ['payment.reported', { subject: 'payment', paymentId: 'pay_9', subscriptionId: 'sub_9' }],
    ['subscription.reported', { subject: 'subscription', subscriptionId: 'pay_9', customerId: 'cus_9' }],
  ])('has a type that no webhook has: %s', (type, said) => {
    const members = { type, data: { id: 'pay_9', subscriptionId: 'sub_9', customerId: 'cus_9' } }
    expect(report(members)).toMatchObject({ ok: true, event: { type, ...said } })
    expect(report({ ...members, id: 'evt_9' }, false)).toMatchObject({ event: { type, subject: 'other' } })
  })
})

describe('createdAt', () => {
  it.each([
    { createdAt: CREATED_AT },
    { createdAt: undefined, created_at: CREATED_AT },
    { createdAt: '2026-03-01T13:00:00+01:00' },
  ])('is read as an instant: %o', (members) => {
    expect(receiveWith(members)).toMatchObject({ event: { createdAt: Date.parse(CREATED_AT) } })
  })

  it.each([undefined, null, '', 'today', 1772366400, '2026-02-30T00:00:00Z', ['2026-03-01T12:00:00Z']])(
    'is invalid as %j',
    (createdAt) => {
      expect(receiveWith({ createdAt })).toEqual({ ok: false, reason: 'created_at_invalid', id: 'evt_1' })
    },
  )

  it('may lie any time back, and at most a day ahead of receipt', () => {
    const at = (ahead: number) => receiveWith({ createdAt: new Date(RECEIVED_AT + ahead).toISOString() })
    expect(at(-9_000 * DAY_MS)).toMatchObject({ ok: true })
    expect(at(DAY_MS)).toMatchObject({ ok: true })
    expect(at(DAY_MS + 1)).toEqual({ ok: false, reason: 'created_at_in_future', id: 'evt_1' })
  })

  it.each([1, 60_000, 3_650 * DAY_MS])(
    'may lie %d ms ahead of receipt where the endpoint says so',
    (limit) => {
      const read = (ahead: number) => {
        const body = Buffer.from(JSON.stringify({ id: 'evt_1', createdAt: new Date(RECEIVED_AT + ahead) }))
        return normalise(body, { environment: 'sandbox', receivedAt: RECEIVED_AT, aheadAtMostMs: limit }).ok
      }
      expect([read(limit), read(limit + 1)]).toEqual([true, false])
    },
  )
})

describe('livemode', () => {
  it.each([
    [true, 'sandbox'],
    [false, 'live'],
  ] as const)('%s does not go with a %s endpoint', (livemode, environment) => {
    const mismatch = { ok: false, reason: 'livemode_mismatch', id: 'evt_1' }
    expect(receiveWith({ livemode }, environment)).toEqual(mismatch)
  })

  it.each([
    [true, 'live'],
    [false, 'sandbox'],
    [undefined, 'live'],
    ['false', 'live'],
    [null, 'sandbox'],
  ] as const)('%s goes with a %s endpoint', (livemode, environment) => {
    expect(receiveWith({ livemode }, environment)).toMatchObject({ ok: true })
  })
})

it.each([
  [{ api_version: '2027-01' }, '2027-01'],
  [{ apiVersion: '2027-01' }, '2027-01'],
  [{ api_version: 3 }, null],
  [{ api_version: 'a\u0000' }, null],
  [{}, null],
])('the version of the interface, of %j, is %s', (members, apiVersion) => {
  expect(receiveWith(members)).toMatchObject({ ok: true, event: { apiVersion } })
})

describe('a type', () => {
  it.each([
    ['subscription.paused', 'v3'],
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

  it.each([undefined, null, 5, '', ['a.b'], 'a\u0000b', '\ud800', 't'.repeat(256), `a.${'b'.repeat(254)}`])(
    'that cannot be kept as text, %j, is unknown',
    (type) => {
      const event = { subject: 'other', type: 'unknown', generation: null }
      expect(receive(envelope(type))).toMatchObject({ ok: true, event })
    },
  )

  it('decides what the event is about, not the object in its data', () => {
    expect(receiveWith({ data: { object: 'subscription', id: 'pay_1' } })).toMatchObject({
      event: { subject: 'payment', paymentId: 'pay_1', subscriptionId: null },
    })
  })

  it.each([undefined, null, 'text', 5, [], [{ id: 'pay_1' }]])('shows nothing with data %j', (data) => {
    expect(receiveWith({ data })).toMatchObject({
      ok: true,
      event: { subject: 'payment', paymentId: null, customerId: null, railProof: null, metadata: {} },
    })
    expect(receiveWith({ type: 'SUBSCRIPTION_RENEWED', data })).toMatchObject({
      ok: true,
      event: { subject: 'subscription', subscriptionId: null, expiresAt: null, cycles: null },
    })
  })
})

describe('an id that an event names', () => {
  const BAD = ['x'.repeat(256), 'a\u0000', '\udc00']

  it.each([
    ['payment.succeeded', (id: string) => ({ id })],
    ['payment.succeeded', (id: string) => ({ customer: { id } })],
    ['payment.succeeded', (id: string) => ({ product: { id } })],
    ['payment.succeeded', (id: string) => ({ subscription: id })],
    ['checkout.succeeded', (id: string) => ({ payment: { id: 'pay_1', customer: id } })],
    ['subscription.created', (id: string) => ({ id })],
    ['subscription.created', (id: string) => ({ id: 'sub_1', last_payment: id })],
    ['customer.updated', (id: string) => ({ id })],
    ['PAYMENT_SUCCESS', (id: string) => ({ payment: { id: 'pay_1', productId: id } })],
    ['SUBSCRIPTION_RENEWED', (id: string) => ({ customer: { id } })],
  ])('quarantines %s when it cannot be kept', (type, dataWith) => {
    const refused = { ok: false, reason: 'reference_id_invalid', id: 'evt_1' }
    for (const id of BAD) expect(receive(envelope(type, dataWith(id)))).toEqual(refused)
  })

  it.each([5, true, '', {}, [], { id: 5 }, { id: '' }, null])('counts as not shown when it is %j', (id) => {
    const none = { paymentId: null, customerId: null, productId: null, subscriptionId: null }
    expect(receiveWith({ data: { id, customer: id, product: id, subscription: id } })).toMatchObject({
      ok: true,
      event: none,
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

it('a fault of the program is no reason to lose the event: it is quarantined under its id', () => {
  const faulty = {
    receivedAt: RECEIVED_AT,
    get environment(): 'live' {
      throw new Error('a fault')
    },
  }
  const body = Buffer.from(JSON.stringify({ ...envelope('payment.succeeded'), livemode: true }))
  expect(normalise(body, faulty)).toEqual({ ok: false, reason: 'normalizer_failed', id: 'evt_1' })
})

it('keys with a meaning to JavaScript are read as data or passed over, and pollute nothing', () => {
  const metadata = '{"__proto__":"a","constructor":"b","toString":"c","nested":{"__proto__":{"polluted":1}}}'
  const customer = '{"__proto__":{"id":"cus_evil"},"constructor":{"prototype":{"polluted":1}}}'
  const body = JSON.stringify(envelope('payment.succeeded', { id: 'pay_1', metadata: 'M', customer: 'C' }))
  const result = receive(body.replace('"M"', metadata).replace('"C"', customer))
  expect(result).toMatchObject({ ok: true, event: { paymentId: 'pay_1', customerId: null } })
  const kept = result.ok ? result.event.metadata : {}
  expect(Object.entries(kept)).toEqual([
    ['__proto__', 'a'],
    ['constructor', 'b'],
    ['toString', 'c'],
  ])
  expect(Object.getPrototypeOf(kept)).toBeNull()
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
})

describe('normalising', () => {
  const FIELDS = [
    ...['id', 'payment', 'payment_id', 'paymentId', 'last_payment', 'subscription', 'subscriptionId'],
    ...['product', 'customer', 'customer_id', 'customer_email', 'metadata', 'context', 'asset', 'method'],
    ...['source', 'status', 'current_cycle', 'total_cycles', 'expires_at', 'externalRef', 'lastPayment'],
    ...['__proto__', 'constructor'],
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
  const documented = fc.constantFrom(...WIRE_TYPES.v2, ...WIRE_TYPES.v3)
  const type = fc.oneof(documented, fc.jsonValue())

  /** Whatever is decided, it is by a rule: either an event or a reason. */
  function decide(body: Uint8Array) {
    const result = receive(body)
    if (!result.ok) expect(QUARANTINE_REASONS).toContain(result.reason)
    expect(result).not.toMatchObject({ reason: 'normalizer_failed' })
    return result
  }

  it('never throws and always decides, whatever bytes come', () => {
    const json = fc.json().map((text) => Buffer.from(text))
    fc.assert(fc.property(fc.oneof(fc.uint8Array(), json), (body) => void decide(body)))
  })

  it('decides on any event of which some bytes have changed on the way', () => {
    const ids = { customerId: 'cus_1', productId: 'pro_1', paymentId: 'pay_1', subscriptionId: 'sub_1' }
    const told = { eventId: 'evt_1', createdAt: Date.parse(CREATED_AT), rail: 'card', ...ids } as const
    const sample = documented.map((one) =>
      Buffer.from(buildSampleEvent({ type: one, environment: 'live', ...told }).body),
    )
    const pieces = ['"', '\\', '{', '}', '[', ']', ':', ',', 'null', '1e999', '\ufeff', '"a":1,', '\\ud800']
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 3 }),
      fc.constantFrom(...pieces).map((text) => Buffer.from(text)),
    )
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 3 }), piece), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(sample, changes, (body, all) => {
        const changed = all.reduce((bytes, [place, removed, added]) => {
          const at = place % (bytes.length + 1)
          return Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)])
        }, body)
        const result = decide(changed)
        if (result.ok) expect(JSON.parse(changed.toString())).toMatchObject({ id: result.event.id })
      }),
      { numRuns: 1000 },
    )
  })

  it('makes an event that survives being written as JSON, or refuses an id, out of any data', () => {
    fc.assert(
      fc.property(type, value, (one, data) => {
        const result = receive(envelope(one, data))
        if (!result.ok) expect(result.reason).toBe('reference_id_invalid')
        else expect(result.event).toMatchObject({ id: 'evt_1', createdAt: Date.parse(CREATED_AT) })
        expect(JSON.parse(JSON.stringify(result))).toEqual(result)
      }),
      { numRuns: 500 },
    )
  })
})
