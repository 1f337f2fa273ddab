import { describe, expect, it } from 'vitest'
import type { NormalizedEvent, PaymentEvent } from '../../src/provider/event.js'
import type { JsonObject } from '../../src/provider/json.js'
import { minute, once, pay, paymentEvent, START, sub } from '../entitlements/events.js'
import { backfill, isoMinute, paymentRecord } from './records.js'

const READ_AT = minute(100_000)

/** What is reported of a payment: types and minutes. */
function reported(json: JsonObject, stored: readonly NormalizedEvent[] = [], isChargedBack = false) {
  const { events } = reportOf(json, stored, isChargedBack)
  return events.map(({ event }) => `${event.type} ${(event.createdAt - START) / 60_000}`)
}

const reportOf = (json: JsonObject, stored: readonly NormalizedEvent[], isChargedBack = false) =>
  backfill([{ kind: 'payment', json, isChargedBack }], stored, { at: READ_AT })

/** An event of the payment that says everything of it but its type. */
const told = (type: PaymentEvent['type'], at: number, fields: Partial<PaymentEvent> = {}) =>
  once(`evt_${type}_${at}`, type, at, fields)
const UNPROVEN = { railProof: null }
const CRYPTO = { railProof: { rail: 'crypto', strength: 1 } } as const

describe('a status of a payment', () => {
  it.each([
    ['AUTHORIZED', 'payment.authorized', ['payment.authorized', 'checkout.succeeded']],
    ['COMPLETED', 'payment.succeeded', ['payment.succeeded']],
    ['FAILED', 'payment.failed', ['payment.failed']],
    ['DECLINED', 'payment.failed', ['payment.failed']],
    ['CANCELED', 'payment.canceled', ['payment.canceled', 'checkout.canceled']],
    ['PARTIALLY_REFUNDED', 'payment.partially_refunded', ['payment.partially_refunded']],
    ['REFUNDED', 'payment.refunded', ['payment.refunded']],
  ] as const)('%s is reported as %s where no event tells it', (status, type, tellers) => {
    const record = paymentRecord([[status, 5]])
    const anyOther = [
      'payment.completed',
      'payment.settled',
      'checkout.initiated',
      'checkout.failed',
    ] as const
    const stored = anyOther.map((other) => told(other, 5))
    expect(reported(record, stored)).toEqual([`${type} 5`])
    for (const teller of tellers) expect(reported(record, [...stored, told(teller, 65)])).toEqual([])
    for (const teller of tellers) expect(reported(record, [told(teller, 66)])).toEqual([`${type} 5`])
  })

  it.each([
    'PENDING',
    'PENDING_3DS',
    'PENDING_REDIRECT',
    'BRIDGING',
    'RECEIVED',
    'PARTIAL',
    'EXPIRED',
    'NEW',
  ])('%s is not reported', (status) => {
    expect(reported(paymentRecord([[status, 5]]))).toEqual([])
    expect(reported({ ...paymentRecord([]), status })).toEqual([])
  })

  it('AUTHORIZED is told by a completed checkout only of a payment known as one by card', () => {
    const record = paymentRecord([['AUTHORIZED', 5]])
    const checkout = told('checkout.succeeded', 5, UNPROVEN)
    expect(reported(record, [checkout])).toEqual(['payment.authorized 5'])
    expect(reported({ ...record, declineCode: 'expired_card' }, [checkout])).toEqual([])
    expect(reported(record, [checkout, told('payment.settled', 5)])).toEqual([])
  })

  it('CANCELED is reported of a payment by crypto in a way that does not make it one by card', () => {
    const record = paymentRecord([['CANCELED', 5]], { asset: { symbol: 'USDC' } })
    expect(reported(record)).toEqual(['checkout.canceled 5'])
    const { events } = reportOf(record, [])
    expect(events[0]?.event).toMatchObject({ paymentId: 'pay_1', railProof: { rail: 'crypto' } })
    expect(
      reported(
        record,
        events.map(({ event }) => event),
      ),
    ).toEqual([])
  })

  it('is told by the nearest event alone: each event tells one status', () => {
    const record = paymentRecord([
      ['FAILED', 0],
      ['AUTHORIZED', 10],
      ['FAILED', 20],
    ])
    const stored = [told('payment.failed', 0), told('payment.authorized', 10)]
    expect(reported(record, stored)).toEqual(['payment.failed 20'])
    expect(reported(record, [...stored, told('payment.failed', 12)])).toEqual([])
  })

  it('that repeats one at the same instant is the same', () => {
    const record = paymentRecord([
      ['FAILED', 5],
      ['DECLINED', 5],
    ])
    expect(reported(record)).toEqual(['payment.failed 5'])
    expect(reportOf(record, []).differences).toEqual([])
  })
})

describe('a payment without a history', () => {
  const bare = (status: string, told: JsonObject = {}) => ({
    ...paymentRecord([]),
    ...{ status, updatedAt: isoMinute(50), ...told },
  })
  const BY_CARD = told('payment.settled', 1)

  it.each<[string, JsonObject, readonly NormalizedEvent[], readonly string[]]>([
    ['a failure', bare('FAILED'), [], ['payment.failed 50']],
    ['a cancellation', bare('CANCELED'), [], ['payment.canceled 50']],
    [
      'success, when it was received',
      bare('COMPLETED', { paymentReceivedAt: isoMinute(7) }),
      [],
      ['payment.succeeded 7'],
    ],
    [
      'success, when it was settled',
      bare('COMPLETED', { paymentSettledAt: isoMinute(9) }),
      [],
      ['payment.succeeded 9'],
    ],
    ['success, at least', bare('COMPLETED'), [], ['payment.succeeded 50']],
    ['success by card', bare('COMPLETED'), [BY_CARD], ['payment.authorized 0', 'payment.succeeded 50']],
    [
      'success by card, by its record',
      bare('COMPLETED', { declineCategory: 'SOFT', paymentReceivedAt: isoMinute(7) }),
      [],
      ['payment.authorized 7', 'payment.succeeded 7'],
    ],
    [
      'a refund',
      bare('REFUNDED', { refundedAt: isoMinute(40) }),
      [],
      ['payment.succeeded 0', 'payment.refunded 40'],
    ],
    [
      'a refund at an unknown time',
      bare('REFUNDED', { paymentReceivedAt: isoMinute(7) }),
      [],
      ['payment.succeeded 7', 'payment.refunded 50'],
    ],
    [
      'a partial refund by card',
      bare('PARTIALLY_REFUNDED', { refundedAt: isoMinute(40) }),
      [BY_CARD],
      ['payment.authorized 0', 'payment.succeeded 0', 'payment.partially_refunded 40'],
    ],
  ])('has its status reported with what that implies: %s', (_, record, stored, expected) => {
    expect(reported(record, stored)).toEqual(expected)
    expect(reported({ ...record, statusTimeline: null }, stored)).toEqual(expected)
  })

  it('has what any event of a type tells, however long ago', () => {
    const stored = [
      told('payment.authorized', 1),
      told('payment.succeeded', 2),
      told('payment.refunded', 9_000),
    ]
    expect(reported(bare('REFUNDED', { refundedAt: isoMinute(40) }), stored)).toEqual([])
  })

  it('has a failure that its newest grant came after, and an authorization that its newest failure came after, reported', () => {
    const retried = [told('payment.failed', 1), told('payment.authorized', 2)]
    expect(reported(bare('FAILED'), retried)).toEqual(['payment.failed 50'])
    expect(reported(bare('FAILED'), [...retried, told('payment.failed', 3)])).toEqual([])
    const failed = [told('payment.authorized', 1), told('payment.failed', 2)]
    const paid = bare('COMPLETED', { paymentReceivedAt: isoMinute(7) })
    expect(reported(paid, failed)).toEqual(['payment.authorized 7', 'payment.succeeded 7'])
  })

  it('is listed as one of a subscription where nothing says when it was authorized, if it was', () => {
    const listed = (status: string, fields: JsonObject = {}, stored: readonly NormalizedEvent[] = []) =>
      reportOf(bare(status, { subscriptionId: 'sub_1', ...fields }), stored).differences
    const unknown = [{ code: 'authorization_unknown', recordId: 'pay_1' }]
    for (const status of ['COMPLETED', 'FAILED', 'CANCELED']) {
      expect(listed(status)).toEqual(unknown)
      expect(listed(status, { subscriptionId: null })).toEqual([])
      expect(listed(status, { asset: { symbol: 'USDC' } })).toEqual([])
      expect(listed(status, {}, [told('payment.authorized', 1)])).toEqual([])
    }
    expect(listed('COMPLETED', {}, [BY_CARD])).toEqual([])
    expect(listed('PENDING')).toEqual([])
  })
})

describe('a chargeback that the legacy interface lists', () => {
  const PAID = paymentRecord([['COMPLETED', 5]])
  const stored = [told('payment.succeeded', 5)]

  it('is reported when it was read, unless one is stored', () => {
    expect(reported(PAID, stored, true)).toEqual(['payment.chargeback 100000'])
    expect(reported(PAID, [...stored, told('payment.chargeback', 9)], true)).toEqual([])
    expect(reported(PAID, stored, false)).toEqual([])
  })

  it('is listed if the subscription was paid again by then, since its own time is not known', () => {
    const events = [
      pay('evt_a', 'payment.authorized', 'pay_1', 0),
      pay('evt_b', 'payment.authorized', 'pay_2', 43_200),
    ]
    const record = paymentRecord([['AUTHORIZED', 0]], { subscriptionId: 'sub_1' })
    expect(reportOf(record, events, true).differences).toEqual([
      { code: 'chargeback_date_unknown', recordId: 'pay_1' },
    ])
    expect(reportOf(record, events.slice(0, 1), true).differences).toEqual([])
  })
})

describe('the record of a payment', () => {
  const PAID = paymentRecord([['COMPLETED', 5]])
  const event = (fields: Partial<PaymentEvent> = {}) => told('payment.succeeded', 5, fields)

  it.each<[string, JsonObject, readonly NormalizedEvent[]]>([
    ['customer is not known', PAID, [event({ customerId: null })]],
    ['customer is another', PAID, [event({ customerId: 'cus_2' })]],
    ['product is not known', PAID, [event({ productId: null })]],
    ['product is another', PAID, [event({ productId: 'pro_b' })]],
    ['subscription is not known', { ...PAID, subscriptionId: 'sub_1' }, [event()]],
    ['subscription is another', { ...PAID, subscriptionId: 'sub_1' }, [event({ subscriptionId: 'sub_2' })]],
    ['rail is not known as crypto', { ...PAID, asset: { symbol: 'USDC' } }, [event(UNPROVEN)]],
  ])('is reported where its %s, and only once', (_, record, stored) => {
    expect(reported(record, stored)).toEqual([expect.stringMatching(/^payment\.reported /)])
    const { events } = reportOf(record, stored)
    expect(reported(record, [...stored, ...events.map((one) => one.event)])).toEqual([])
  })

  it.each<[string, JsonObject, readonly NormalizedEvent[]]>([
    ['nothing differs', PAID, [event()]],
    ['it says less', { ...PAID, customerId: null, productId: null }, [event({ subscriptionId: 'sub_1' })]],
    [
      'a subscription has its products elsewhere',
      { ...PAID, subscriptionId: 'sub_1' },
      [event({ subscriptionId: 'sub_1', productId: 'pro_b' })],
    ],
    ['its rail is known', { ...PAID, asset: { symbol: 'USDC' } }, [event(CRYPTO)]],
    ['events prove another rail better', { ...PAID, asset: { symbol: 'USDC' } }, [event()]],
    ['nobody has heard of it', { ...paymentRecord([['PENDING', 0]]), subscriptionId: 'sub_1' }, []],
  ])('is not reported where %s', (_, record, stored) => {
    expect(reportOf(record, stored)).toEqual({ events: [], differences: [] })
  })

  it('is dated after all that it corrects', () => {
    const newer = event({ createdAt: minute(77), customerId: 'cus_2' })
    expect(reportOf(PAID, [event(), newer]).events.map(({ event }) => event.createdAt)).toEqual([
      minute(77) + 1,
    ])
    expect(reported({ ...PAID, updatedAt: isoMinute(90) }, [event(), newer])).toEqual(['payment.reported 90'])
    const naming = sub('evt_sub', 'subscription.created', 95, { paymentId: 'pay_1', subscriptionId: 'sub_2' })
    const [moved] = reportOf({ ...PAID, subscriptionId: 'sub_1' }, [event(), naming]).events
    expect(moved?.event).toMatchObject({ subscriptionId: 'sub_1', createdAt: minute(95) + 1 })
  })

  it('is not reported again for what the reported statuses say', () => {
    const stored = [event({ customerId: null })]
    const record = paymentRecord([
      ['COMPLETED', 5],
      ['REFUNDED', 9],
    ])
    expect(reported(record, stored)).toEqual(['payment.refunded 9'])
  })

  it('compares the customer with all events of the subscription', () => {
    const stored = [
      event({ subscriptionId: 'sub_1', customerId: null }),
      paymentEvent({ id: 'evt_other', paymentId: 'pay_2', subscriptionId: 'sub_1', createdAt: minute(9) }),
    ]
    const record = { ...PAID, subscriptionId: 'sub_1' }
    expect(reported(record, stored)).toEqual([])
    expect(reported({ ...record, customerId: 'cus_2' }, stored)).toEqual([
      expect.stringMatching(/^payment\.reported 9\.0/),
    ])
  })
})

describe('a record that cannot be used', () => {
  it.each<[string, JsonObject]>([
    ['no id', { ...paymentRecord([['COMPLETED', 5]]), id: undefined }],
    ['no status', { ...paymentRecord([['COMPLETED', 5]]), status: null }],
    ['no time', { ...paymentRecord([['COMPLETED', 5]]), createdAt: 'once' }],
    ['an id that cannot be kept', { ...paymentRecord([['COMPLETED', 5]]), customerId: 'c'.repeat(256) }],
    ['a date days ahead', { ...paymentRecord([['COMPLETED', 5]]), updatedAt: isoMinute(200_000) }],
  ])('is listed, and nothing is reported of it: %s', (_, json) => {
    const { events, differences } = reportOf(json, [])
    expect(events).toEqual([])
    expect(differences).toMatchObject([{ code: 'record_unusable' }])
  })
})
