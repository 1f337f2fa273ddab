import { describe, expect, it } from 'vitest'
import type { Policy } from '../../src/entitlements/policy.js'
import type { NormalizedEvent } from '../../src/provider/event.js'
import type { JsonObject } from '../../src/provider/json.js'
import { minute, pay, START, sub } from '../entitlements/events.js'
import { plainSources } from '../entitlements/plain/ask.js'
import { plainEntitlements } from '../entitlements/plain/entitlements.js'
import { EXAMPLE_POLICY } from '../entitlements/policies.js'
import { backfill, DAY, isoMinute, subscriptionRecord } from './records.js'

const READ_AT = minute(100 * DAY)

/** What is reported of a subscription: types, minutes (a millisecond more is `+`), and the product, if it names one. */
function reported(json: JsonObject, stored: readonly NormalizedEvent[], policy?: Policy) {
  return reportOf(json, stored, policy).events.map(({ event }) => {
    const at = (event.createdAt - START) / 60_000
    const shown = Number.isInteger(at) ? `${at}` : `${Math.floor(at)}+`
    return [event.type.replace('subscription', ''), shown, event.productId].filter(Boolean).join(' ')
  })
}

const reportOf = (json: JsonObject, stored: readonly NormalizedEvent[], policy: Policy = EXAMPLE_POLICY) =>
  backfill([{ kind: 'subscription', json }], stored, { at: READ_AT, policy })

/** A second backfill of the same record, after the first was stored. */
function reportedAgain(json: JsonObject, stored: readonly NormalizedEvent[]) {
  return reported(json, [...stored, ...reportOf(json, stored).events.map(({ event }) => event)])
}

const PERIOD = 30 * DAY
/** Shows what a webhook of the provider shows. */
const cycle = (current: number, expires: number) => ({
  cycles: { current, total: null },
  expiresAt: minute(expires),
  cancelAtPeriodEnd: false,
})

/** The first cycle, paid by `pay_1`. */
const BEGUN = [
  pay('evt_p1', 'payment.authorized', 'pay_1', 0),
  sub('evt_s1', 'subscription.created', 1, cycle(1, PERIOD)),
]
/** In the second cycle. */
const RENEWED = {
  currentCycle: 2,
  currentCycleDueAt: isoMinute(2 * PERIOD),
  updatedAt: isoMinute(PERIOD + 3),
}
const PAID_AGAIN = pay('evt_p2', 'payment.authorized', 'pay_2', PERIOD)
const WITHOUT_NUMBER = { cycles: null, cancelAtPeriodEnd: false }

describe('a subscription of which everything is told', () => {
  it.each<[string, JsonObject, readonly NormalizedEvent[]]>([
    ['in its first cycle', {}, BEGUN],
    [
      'in its second',
      RENEWED,
      [...BEGUN, PAID_AGAIN, sub('evt_s2', 'subscription.renewed', PERIOD + 1, cycle(2, 2 * PERIOD))],
    ],
    [
      'by the legacy generation',
      RENEWED,
      [
        ...BEGUN,
        PAID_AGAIN,
        sub('evt_s2', 'subscription.renewed', PERIOD + 1, {
          ...WITHOUT_NUMBER,
          expiresAt: minute(2 * PERIOD - 60),
        }),
      ],
    ],
    [
      'without a due date',
      { ...RENEWED, currentCycleDueAt: null },
      [...BEGUN, PAID_AGAIN, sub('evt_s2', 'subscription.renewed', PERIOD + 1, WITHOUT_NUMBER)],
    ],
    ['overdue', { status: 'PAST_DUE' }, [...BEGUN, sub('evt_s2', 'subscription.past_due', PERIOD)]],
    ['canceled', { status: 'CANCELED' }, [...BEGUN, sub('evt_s2', 'subscription.canceled', 2)]],
    [
      'canceled, in both generations',
      { status: 'CANCELED' },
      [...BEGUN, sub('evt_s2', 'subscription.canceled', 2), sub('evt_s3', 'subscription.expired', 2)],
    ],
    ['expired', { status: 'EXPIRED' }, [...BEGUN, sub('evt_s2', 'subscription.expired', 2)]],
    [
      'announced to be canceled',
      { cancelAtPeriodEnd: true },
      [...BEGUN, sub('evt_s2', 'subscription.updated', 2, { cancelAtPeriodEnd: true })],
    ],
    [
      'on another plan',
      { productId: 'pro_b' },
      [...BEGUN, sub('evt_s2', 'subscription.updated', 2, { productId: 'pro_b' })],
    ],
  ])('stores nothing: %s', (_, told, stored) => {
    const updatedAt = isoMinute(PERIOD + 3)
    expect(reportOf(subscriptionRecord({ updatedAt, ...told }), stored)).toEqual({
      events: [],
      differences: [],
    })
  })
})

describe('a paid cycle that no event tells', () => {
  it('is reported as the first or as a further one, when its payment was first paid, naming the product of that', () => {
    const paid = pay('evt_p1', 'payment.authorized', 'pay_1', 3, { productId: 'pro_old' })
    const record = subscriptionRecord({ updatedAt: isoMinute(9) })
    expect(reported(record, [paid])).toEqual(['.created 3 pro_old', '.updated 9 pro_a'])
    expect(reported(subscriptionRecord(RENEWED), [...BEGUN, PAID_AGAIN])).toEqual([
      `.renewed ${PERIOD} pro_a`,
    ])
  })

  it('names no product where that of its payment is not known', () => {
    const unnamed = pay('evt_p2', 'payment.authorized', 'pay_2', PERIOD, { productId: null })
    expect(reported(subscriptionRecord(RENEWED), [...BEGUN, unnamed])).toEqual([`.renewed ${PERIOD}`])
  })

  it('is reported when the record was changed, or after the newest event, where no payment is known', () => {
    expect(reported(subscriptionRecord(RENEWED), BEGUN)).toEqual([`.renewed ${PERIOD + 3} pro_a`])
    const stale = subscriptionRecord({ ...RENEWED, updatedAt: isoMinute(-10) })
    expect(reported(stale, BEGUN)).toEqual(['.renewed 1+ pro_a'])
  })

  it('is not reported of an overdue subscription without such a payment', () => {
    const record = subscriptionRecord({ ...RENEWED, status: 'PAST_DUE' })
    expect(reported(record, BEGUN)).toEqual([`.past_due ${PERIOD + 3} pro_a`])
    expect(reported(record, [...BEGUN, PAID_AGAIN])).toEqual([
      `.renewed ${PERIOD} pro_a`,
      `.past_due ${PERIOD + 3} pro_a`,
    ])
  })

  it('is not told by an earlier cycle, nor by an event from before an end', () => {
    const v2 = sub('evt_s1', 'subscription.created', 1, {
      ...WITHOUT_NUMBER,
      expiresAt: minute(2 * PERIOD - 61),
    })
    expect(reported(subscriptionRecord(RENEWED), [v2, PAID_AGAIN])).toEqual([`.renewed ${PERIOD} pro_a`])
    const ends = [
      sub('evt_s2', 'subscription.expired', 9),
      sub('evt_s2', 'subscription.canceled', 9),
      sub('evt_s2', 'subscription.canceled', 9, { cancelAtPeriodEnd: true, expiresAt: minute(PERIOD) }),
    ]
    for (const end of ends) {
      const revived = pay('evt_p2', 'payment.authorized', 'pay_2', 10)
      const record = subscriptionRecord({ updatedAt: isoMinute(12) })
      expect(reported(record, [...BEGUN, end, revived])).toContain('.created 10 pro_a')
    }
    const still = { cancelAtPeriodEnd: true, expiresAt: minute(101 * DAY) }
    const record = subscriptionRecord({ cancelAtPeriodEnd: true, updatedAt: isoMinute(12) })
    expect(reported(record, [...BEGUN, sub('evt_s2', 'subscription.canceled', 9, still)])).toEqual([])
  })

  it('is paid by the first payment since a day before it began, and not by the charge of an upgrade after it', () => {
    const charge = pay('evt_p3', 'payment.authorized', 'pay_3', PERIOD + 10 * DAY, { productId: 'pro_b' })
    const before = pay('evt_p0', 'payment.authorized', 'pay_0', PERIOD - 2 * DAY)
    const stored = [...BEGUN, before, PAID_AGAIN, charge]
    expect(reported(subscriptionRecord(RENEWED), stored)).toEqual([`.renewed ${PERIOD} pro_a`])
    expect(reportOf(subscriptionRecord(RENEWED), stored).differences).toEqual([])
  })

  it('is paid by the newest where its beginning cannot be told, and is listed then', () => {
    const charge = pay('evt_p3', 'payment.authorized', 'pay_3', PERIOD + 10 * DAY)
    const stored = [...BEGUN, PAID_AGAIN, charge]
    const record = subscriptionRecord({ ...RENEWED, currentCycleDueAt: null, currentCycle: 2 })
    expect(reported(record, [PAID_AGAIN, charge])).toEqual([`.renewed ${PERIOD + 10 * DAY} pro_a`])
    expect(reportOf(record, [PAID_AGAIN, charge]).differences).toEqual([
      { code: 'cycle_payment_unclear', recordId: 'sub_1' },
    ])
    const late = subscriptionRecord({ ...RENEWED, currentCycleDueAt: isoMinute(5 * PERIOD) })
    expect(reported(late, stored)).toEqual([`.renewed ${PERIOD + 10 * DAY} pro_a`])
    expect(reportOf(late, stored).differences).toMatchObject([{ code: 'cycle_payment_unclear' }])
  })

  it('is not paid by the charge of a plan change where no renewal is due', () => {
    const charge = pay('evt_p3', 'payment.authorized', 'pay_3', 9, { productId: 'pro_b' })
    const upgrade = sub('evt_s3', 'subscription.updated', 9, { productId: 'pro_b' })
    const expiry = sub('evt_s4', 'subscription.expired', 5)
    const record = subscriptionRecord({ ...RENEWED, currentCycleDueAt: null, productId: 'pro_b' })
    expect(reported(record, [...BEGUN, expiry, PAID_AGAIN, charge, upgrade])).toEqual([
      `.renewed ${PERIOD} pro_a`,
      `.updated ${PERIOD + 3} pro_b`,
    ])
  })

  it('is not paid by a plan change that no event tells either, where only its payment is for another product', () => {
    const at = PERIOD + 10 * DAY
    const named = { productId: 'pro_b' }
    const first = pay('evt_p1', 'payment.authorized', 'pay_1', 0)
    const charge = [
      pay('evt_p3', 'payment.authorized', 'pay_3', at, named),
      pay('evt_p4', 'payment.succeeded', 'pay_3', at, named),
    ]
    const due = isoMinute(at + 365 * DAY)
    const yearly = { currentCycleDueAt: due, updatedAt: isoMinute(at + 1), productId: 'pro_b' }
    const record = subscriptionRecord({ ...RENEWED, ...yearly })
    const stored = [first, PAID_AGAIN, ...charge]
    expect(reported(record, stored)).toEqual([`.renewed ${PERIOD} pro_a`, `.updated ${at} pro_b`])
    expect(reportedAgain(record, stored)).toEqual([])
    // The cycle was paid for a plan that was told of, and whose charge was given back.
    const earlier = [
      pay('evt_p5', 'payment.authorized', 'pay_4', 5 * DAY, { productId: 'pro_c' }),
      sub('evt_s2', 'subscription.updated', 5 * DAY, { productId: 'pro_c' }),
      pay('evt_p6', 'payment.refunded', 'pay_4', 9 * DAY, { productId: 'pro_c' }),
    ]
    const again = { ...PAID_AGAIN, productId: 'pro_c' }
    expect(reported(record, [...BEGUN, ...earlier, again, ...charge])).toEqual([
      `.renewed ${PERIOD} pro_c`,
      `.updated ${at} pro_b`,
    ])
    // In a third cycle, it has paid that one.
    const third = subscriptionRecord({ ...RENEWED, ...yearly, currentCycle: 3 })
    expect(reported(third, stored)).toEqual([`.renewed ${at} pro_b`])
  })

  it('is not the first one, once its beginning was told without a number, though a plan change has moved its end', () => {
    const at = 3 * DAY
    const begun = sub('evt_s1', 'subscription.created', 1, { ...WITHOUT_NUMBER, expiresAt: minute(PERIOD) })
    const charge = (['payment.authorized', 'payment.succeeded'] as const).map((type, i) =>
      pay(`evt_c${i}`, type, 'pay_2', at, { productId: 'pro_b' }),
    )
    const moved = { currentCycleDueAt: isoMinute(at + 365 * DAY), updatedAt: isoMinute(at + 1) }
    const record = subscriptionRecord({ ...moved, productId: 'pro_b' })
    const stored = [...BEGUN.slice(0, 1), begun, ...charge]
    expect(reported(record, stored)).toEqual([`.updated ${at} pro_b`])
    expect(reportedAgain(record, stored)).toEqual([])
  })

  describe.each([30, 365])('is not missed by an end that a plan change moved by %i days', (days) => {
    const at = PERIOD + 10 * DAY
    const due = { currentCycleDueAt: isoMinute(at + days * DAY), updatedAt: isoMinute(at + 1) }
    const record = subscriptionRecord({ ...RENEWED, ...due, productId: 'pro_b' })
    const renewed = sub('evt_s2', 'subscription.renewed', PERIOD, {
      ...WITHOUT_NUMBER,
      expiresAt: minute(2 * PERIOD),
    })
    const chargeOf = (productId: string | null) =>
      (['payment.authorized', 'payment.succeeded'] as const).map((type, i) =>
        pay(`evt_c${i}`, type, 'pay_3', at, { productId }),
      )
    const moved = { productId: 'pro_b', expiresAt: minute(at + days * DAY) }
    const told = sub('evt_s3', 'subscription.updated', at, moved)
    const refund = pay('evt_r', 'payment.refunded', 'pay_3', at + DAY, { productId: 'pro_b' })

    it.each<[string, readonly NormalizedEvent[], readonly string[]]>([
      ['is told', [...chargeOf('pro_b'), told, refund], []],
      ['is not told', chargeOf('pro_b'), [`.updated ${at} pro_b`]],
      ['names the old plan', chargeOf('pro_a'), [`.updated ${at} pro_b`]],
      ['names no plan', chargeOf(null), [`.updated ${at} pro_b`]],
      ['was not made', [], [`.updated ${at + 1} pro_b`]],
    ])('where each cycle was told with its payment, and the charge %s', (_, charge, expected) => {
      const stored = [...BEGUN, PAID_AGAIN, renewed, ...charge]
      expect(reported(record, stored)).toEqual(expected)
      expect(reportedAgain(record, stored)).toEqual([])
      expect(reportOf(record, stored).differences).toEqual([])
    })

    it('but is, and is listed, where the plan is the same: its own end may have been moved', () => {
      const same = { ...record, productId: 'pro_a' }
      expect(reported(same, [...BEGUN, PAID_AGAIN, renewed])).toEqual([`.renewed ${at + 1} pro_a`])
      expect(reportOf(same, [...BEGUN, PAID_AGAIN, renewed]).differences).toMatchObject([
        { code: 'cycle_payment_unclear' },
      ])
    })

    it('but is where it was paid for since it was due, or overdue, or had ended', () => {
      const paidAt = 2 * PERIOD - DAY
      const again = pay('evt_p4', 'payment.authorized', 'pay_4', paidAt, { productId: 'pro_b' })
      const stored = [...BEGUN, PAID_AGAIN, renewed]
      expect(reported(record, [...stored, again])).toEqual([`.renewed ${paidAt} pro_b`])
      const runs = { ...record, updatedAt: isoMinute(2 * PERIOD + DAY) }
      for (const type of ['subscription.past_due', 'subscription.expired'] as const) {
        const end = sub('evt_s4', type, 2 * PERIOD, WITHOUT_NUMBER)
        expect(reported(runs, [...stored, end])).toEqual([`.renewed ${2 * PERIOD + DAY} pro_b`])
      }
    })
  })

  it('is paid by its own payment, whatever other payments for another plan or for none may have been for', () => {
    const twice = pay('evt_p0', 'payment.authorized', 'pay_0', 10)
    const renewed = sub('evt_s2', 'subscription.renewed', PERIOD, cycle(2, 2 * PERIOD))
    const third = pay('evt_p3', 'payment.authorized', 'pay_3', 2 * PERIOD, { productId: 'pro_c' })
    const record = subscriptionRecord({
      ...{ productId: 'pro_c', currentCycle: 3 },
      ...{ currentCycleDueAt: isoMinute(3 * PERIOD), updatedAt: isoMinute(2 * PERIOD) },
    })
    const stored = [...BEGUN, twice, PAID_AGAIN, renewed, third]
    expect(reported(record, stored)).toEqual([`.renewed ${2 * PERIOD} pro_c`])
    // Where its beginning cannot be told, a payment for the plan as told is no charge.
    const plan = [
      pay('evt_p4', 'payment.authorized', 'pay_4', 9 * DAY, { productId: null }),
      sub('evt_s3', 'subscription.updated', 9 * DAY, { productId: 'pro_b' }),
    ]
    const unknown = pay('evt_p5', 'payment.authorized', 'pay_5', 2 * DAY, { productId: null })
    const again = pay('evt_p6', 'payment.authorized', 'pay_6', PERIOD, { productId: 'pro_b' })
    const json = subscriptionRecord({
      ...{ productId: 'pro_b', currentCycle: 2 },
      ...{ currentCycleDueAt: isoMinute(400 * DAY), updatedAt: isoMinute(PERIOD) },
    })
    expect(reported(json, [...BEGUN, unknown, ...plan, again])).toEqual([`.renewed ${PERIOD} pro_b`])
    expect(reportOf(json, [...BEGUN, unknown, ...plan, again]).differences).toMatchObject([
      { code: 'cycle_payment_unclear' },
    ])
  })

  const chargedBack = pay('evt_p5', 'payment.chargeback', 'pay_3', PERIOD + 12 * DAY)
  it.each<[string, number, readonly NormalizedEvent[]]>([
    ['a year', PERIOD + 375 * DAY, []],
    ['a year, and is charged back', PERIOD + 375 * DAY, [chargedBack]],
    // By two equal cycles, the second one would have begun by now, but after all payments.
    ['a quarter, and is charged back', PERIOD + 100 * DAY, [chargedBack]],
  ])(
    'is not paid by the charge of a plan change that begins a cycle of %s, and is listed with others',
    (_, due, more) => {
      const charge = pay('evt_p3', 'payment.authorized', 'pay_3', PERIOD + 10 * DAY, { productId: 'pro_b' })
      const upgrade = sub('evt_s3', 'subscription.updated', PERIOD + 10 * DAY, { productId: 'pro_b' })
      const stored = [...BEGUN, PAID_AGAIN, charge, upgrade, ...more]
      const record = subscriptionRecord({
        ...{ currentCycle: 2, currentCycleDueAt: isoMinute(due) },
        ...{ updatedAt: isoMinute(PERIOD + 12 * DAY), productId: 'pro_b' },
      })
      expect(reported(record, stored)).toEqual([`.renewed ${PERIOD} pro_a`])
      expect(reportedAgain(record, stored)).toEqual([])
      expect(reportOf(record, stored).differences).toEqual([])
      const another = pay('evt_p4', 'payment.authorized', 'pay_4', 5 * DAY)
      expect(reportOf(record, [...stored, another]).differences).toMatchObject([
        { code: 'cycle_payment_unclear' },
      ])
    },
  )
})

describe('a plan that no event names', () => {
  const record = subscriptionRecord({ productId: 'pro_b', updatedAt: isoMinute(20) })

  it('is reported when its charge was first paid, or else when the record was changed', () => {
    const charge = [
      pay('evt_p3', 'payment.authorized', 'pay_3', 9),
      pay('evt_p4', 'payment.succeeded', 'pay_3', 10),
    ]
    expect(reported(record, [...BEGUN, ...charge])).toEqual(['.updated 9 pro_b'])
    expect(reported(record, [...BEGUN, ...charge.slice(0, 1)])).toEqual(['.updated 20 pro_b'])
    expect(reported(record, BEGUN)).toEqual(['.updated 20 pro_b'])
  })

  it('is not charged to a payment of an earlier plan change', () => {
    const charge = [
      pay('evt_p3', 'payment.authorized', 'pay_3', 9),
      pay('evt_p4', 'payment.succeeded', 'pay_3', 10),
      sub('evt_s3', 'subscription.updated', 8, { productId: 'pro_c' }),
    ]
    expect(reported(record, [...BEGUN, ...charge])).toEqual(['.updated 20 pro_b'])
  })

  it('is not reported where the newest event that names one names it, even if its charge was refunded', () => {
    const upgraded = [
      pay('evt_p3', 'payment.authorized', 'pay_3', 9),
      sub('evt_s3', 'subscription.updated', 9, { productId: 'pro_b' }),
      pay('evt_p4', 'payment.refunded', 'pay_3', 10),
    ]
    expect(reported(record, [...BEGUN, ...upgraded])).toEqual([])
  })
})

describe('payments that nothing explains', () => {
  const charge = (id: string, at: number, productId: string | null) =>
    (['payment.authorized', 'payment.succeeded'] as const).map((type) =>
      pay(`evt_${id}_${type}`, type, id, at, { productId }),
    )
  const refundOf = (id: string) => pay(`evt_${id}_refund`, 'payment.refunded', id, 199, { productId: null })
  const on = (productId: string) => subscriptionRecord({ productId, updatedAt: isoMinute(20 * DAY) })
  const PLAN_UNCLEAR = [{ code: 'plan_charge_unclear', recordId: 'sub_1' }]

  it.each<[string, string, readonly NormalizedEvent[], NormalizedEvent]>([
    ['two of them', 'pro_b', [...charge('pay_3', 9, null), ...charge('pay_4', 99, null)], refundOf('pay_4')],
    ['there and back', 'pro_a', charge('pay_3', 9, 'pro_b'), refundOf('pay_3')],
    ['one for a third plan', 'pro_b', charge('pay_3', 9, 'pro_c'), refundOf('pay_3')],
  ])('are listed where one that changed the plan was given back: %s', (_, plan, charges, refund) => {
    expect(reportOf(on(plan), [...BEGUN, ...charges]).differences).toEqual([])
    expect(reportOf(on(plan), [...BEGUN, ...charges, refund]).differences).toEqual(PLAN_UNCLEAR)
    const expired = { ...on(plan), status: 'EXPIRED' }
    expect(reportOf(expired, [...BEGUN, ...charges, refund]).differences).toEqual([])
  })

  it('are listed where one may have paid a cycle that was told without a payment', () => {
    const [, begun] = BEGUN as [NormalizedEvent, NormalizedEvent]
    const late = pay('evt_p1', 'payment.succeeded', 'pay_1', 2 * DAY)
    const record = subscriptionRecord()
    expect(reportOf(record, [begun, late]).differences).toEqual([
      { code: 'cycle_payment_unclear', recordId: 'sub_1' },
    ])
    expect(reportOf(record, [begun, { ...late, createdAt: minute(DAY) }]).differences).toEqual([])
    expect(reportOf(record, [begun]).differences).toEqual([])
  })
})

describe('the end of a fixed term', () => {
  const record = subscriptionRecord({ totalCycles: 1, updatedAt: isoMinute(20) })

  it('is reported without a product, unless the newest event with cycles shows both numbers', () => {
    expect(reported(record, BEGUN)).toEqual(['.updated 20'])
    const shown = sub('evt_s3', 'subscription.updated', 9, { cycles: { current: 1, total: 1 } })
    expect(reported(record, [...BEGUN, shown])).toEqual([])
  })

  it('is not reported of an overdue subscription, nor without a due date, and its last cycle is listed then', () => {
    const overdue = { ...record, status: 'PAST_DUE' }
    expect(reported(overdue, BEGUN)).toEqual(['.past_due 20 pro_a'])
    const open = { ...record, currentCycleDueAt: null }
    expect(reportOf(open, BEGUN)).toEqual({
      events: [],
      differences: [{ code: 'term_end_unknown', recordId: 'sub_1' }],
    })
    expect(reportOf({ ...open, totalCycles: 2 }, BEGUN).differences).toEqual([])
  })

  it('is not lifted by what a record without a due date has reported', () => {
    const ends = sub('evt_s3', 'subscription.updated', 9, {
      cycles: { current: 1, total: 1 },
      expiresAt: minute(200 * DAY),
    })
    const open = { ...record, currentCycleDueAt: null, cancelAtPeriodEnd: true, productId: 'pro_b' }
    const { events } = reportOf(open, [...BEGUN, ends])
    expect(events.map(({ event }) => event)).toMatchObject([
      { type: 'subscription.updated', cycles: null, cancelAtPeriodEnd: true },
    ])
  })
})

describe('an announced cancellation', () => {
  it.each([true, false])(
    'is reported where it is shown otherwise, as %s, and only once',
    (cancelAtPeriodEnd) => {
      const shown = sub('evt_s3', 'subscription.updated', 9, { cancelAtPeriodEnd: !cancelAtPeriodEnd })
      const record = subscriptionRecord({ cancelAtPeriodEnd, updatedAt: isoMinute(20) })
      expect(reported(record, [...BEGUN, shown])).toEqual(['.reported 20 pro_a'])
      expect(reportedAgain(record, [...BEGUN, shown])).toEqual([])
    },
  )
})

describe('a status', () => {
  const updatedAt = isoMinute(20)

  it.each([
    ['PAST_DUE', '.past_due 20 pro_a'],
    ['CANCELED', '.canceled 20 pro_a'],
    ['EXPIRED', '.expired 20 pro_a'],
  ])('%s is reported where the newest event says another, and only once', (status, expected) => {
    const record = subscriptionRecord({ status, updatedAt })
    expect(reported(record, BEGUN)).toEqual([expected])
    expect(reportedAgain(record, BEGUN)).toEqual([])
  })

  it('CANCELED is reported again if access lasts longer than the record says, by an hour', () => {
    const canceled = (expires: number) =>
      sub('evt_s2', 'subscription.canceled', 9, { cancelAtPeriodEnd: true, expiresAt: minute(expires) })
    const ends = 300 * DAY
    const record = subscriptionRecord({ status: 'CANCELED', updatedAt, currentCycleDueAt: isoMinute(ends) })
    const flagged = { ...record, cancelAtPeriodEnd: true }
    expect(reported(record, [...BEGUN, canceled(ends)])).toEqual(['.canceled 20 pro_a'])
    expect(reported(flagged, [...BEGUN, canceled(ends + 60)])).toEqual([])
    expect(reported(flagged, [...BEGUN, canceled(ends + 61)])).toEqual(['.canceled 20 pro_a'])
    // The record no longer shows which period it waits for.
    expect(reported({ ...flagged, currentCycleDueAt: null }, [...BEGUN, canceled(ends)])).toEqual([])
    // Under another policy, a cancellation at once waits for the paid period too.
    const patient: Policy = { ...EXAMPLE_POLICY, canceled: 'period_end' }
    expect(reported(record, [...BEGUN, canceled(ends)], patient)).toEqual([])
  })

  it('CANCELED is listed if it is reported, and waits for the end of a period that the record no longer shows', () => {
    const fields = { status: 'CANCELED', cancelAtPeriodEnd: true, currentCycleDueAt: null }
    const differences = (updatedAt: number) =>
      reportOf(subscriptionRecord({ ...fields, updatedAt: isoMinute(updatedAt) }), BEGUN).differences
    const listed = [{ code: 'cancellation_end_unknown', recordId: 'sub_1' }]
    expect(differences(20)).toEqual(listed)
    expect(differences(PERIOD)).toEqual([])
    // Of its newest cycle no end was told.
    const second = subscriptionRecord({ ...fields, currentCycle: 2, updatedAt: isoMinute(PERIOD + 9 * DAY) })
    expect(reportOf(second, BEGUN).differences).toEqual(listed)
  })

  it('EXPIRED is reported again if there is access, and not if one more event would not end it', () => {
    const expired = sub('evt_s2', 'subscription.expired', 9)
    const revived = pay('evt_p2', 'payment.authorized', 'pay_2', 10)
    const record = subscriptionRecord({ status: 'EXPIRED', updatedAt })
    expect(reported(record, [...BEGUN, expired, revived])).toEqual(['.expired 20 pro_a'])
    const revokes = EXAMPLE_POLICY.revokeOn.card.filter((type) => type !== 'subscription.expired')
    const lenient = { ...EXAMPLE_POLICY, revokeOn: { ...EXAMPLE_POLICY.revokeOn, card: revokes } }
    expect(reported(record, [...BEGUN, expired, revived], lenient)).toEqual([])
  })

  it.each(['INCOMPLETE', 'TRIALING', 'PAUSED', 'PENDING_3DS', 'PENDING_REDIRECT', 'NEW'])(
    '%s is listed, and nothing is reported of it',
    (status) => {
      expect(reportOf(subscriptionRecord({ status, customerId: 'cus_2' }), BEGUN)).toEqual({
        events: [],
        differences: [{ code: 'status_unexplained', recordId: 'sub_1', about: status }],
      })
    },
  )
})

describe('the customer of a subscription', () => {
  it('is reported after all events where the newest one names another or none does, and only once', () => {
    const paid = pay('evt_p2', 'payment.succeeded', 'pay_1', 30)
    const record = subscriptionRecord({ customerId: 'cus_2', updatedAt: isoMinute(20) })
    expect(reported(record, [...BEGUN, paid])).toEqual(['.reported 30+ pro_a'])
    expect(reportedAgain(record, [...BEGUN, paid])).toEqual([])
    const nobody = BEGUN.map((event) => ({ ...event, customerId: null }))
    expect(reported(subscriptionRecord({ updatedAt: isoMinute(20) }), nobody)).toEqual(['.reported 20 pro_a'])
  })
})

describe('a record that may be older than the stored events', () => {
  const record = subscriptionRecord({ status: 'EXPIRED', updatedAt: isoMinute(20) })
  const LATER = sub('evt_s9', 'subscription.updated', 80)

  it('reports nothing an hour after the newest webhook of the subscription, and is listed', () => {
    expect(reportOf(record, [...BEGUN, { ...LATER, createdAt: minute(81) }])).toEqual({
      events: [],
      differences: [{ code: 'record_older', recordId: 'sub_1' }],
    })
    expect(reported(record, [...BEGUN, LATER])).toEqual(['.expired 80+ pro_a'])
    const ofPayment = pay('evt_p9', 'payment.succeeded', 'pay_1', 2_000)
    expect(reported(record, [...BEGUN, ofPayment])).toEqual(['.expired 20 pro_a'])
  })

  it('has to be read again if an event came or is dated after the reading began', () => {
    const again = { events: [], differences: [{ code: 'read_again', recordId: 'sub_1' }] }
    const [first] = BEGUN as [NormalizedEvent]
    const since = { at: READ_AT, storedBefore: 1 }
    expect(backfill([{ kind: 'subscription', json: record }], BEGUN, since)).toEqual(again)
    expect(backfill([{ kind: 'subscription', json: record }], [first], since).events).toHaveLength(1)
    expect(reportOf(record, [...BEGUN, { ...LATER, createdAt: READ_AT + 1 }])).toEqual(again)
  })
})

describe('what is reported', () => {
  it('has the record as it was read in the envelope of the provider, and an id of its own that stays', () => {
    const json = subscriptionRecord({ status: 'EXPIRED', updatedAt: isoMinute(20), unknownField: { a: 1 } })
    const [event] = reportOf(json, BEGUN).events
    expect(JSON.parse(event?.body.toString() ?? '')).toEqual({
      id: expect.stringMatching(/^rec_[0-9a-f]{24}$/),
      type: 'subscription.expired',
      createdAt: isoMinute(20),
      livemode: true,
      data: { ...json, status: 'expired' },
      reported: { at: new Date(READ_AT).toISOString(), by: 'backfill' },
    })
    const later = backfill([{ kind: 'subscription', json: { ...json, organizationId: 'org_2' } }], BEGUN, {
      at: READ_AT + 7,
    })
    expect(later.events[0]?.event.id).toBe(event?.event.id)
    expect(event?.event.id).toBe('rec_b9039e4b07d2239ddf333d38')
  })
})

describe('what happens to access', () => {
  /** The products that the customer may use after a backfill, by a second reading of the rules. */
  function accessAfter(json: JsonObject, stored: readonly NormalizedEvent[]): readonly string[] {
    const all = [...stored, ...reportOf(json, stored).events.map(({ event }) => event)]
    return plainEntitlements(plainSources(all, EXAMPLE_POLICY), READ_AT)
      .filter(({ active }) => active)
      .map(({ productId }) => productId)
  }
  const UPGRADED = [
    pay('evt_p3', 'payment.authorized', 'pay_3', 9 * DAY, { productId: 'pro_b' }),
    pay('evt_p4', 'payment.succeeded', 'pay_3', 9 * DAY, { productId: 'pro_b' }),
  ]

  it('a refund of an upgrade that nobody told gives the plan before back', () => {
    const record = subscriptionRecord({ productId: 'pro_b', updatedAt: isoMinute(13 * DAY) })
    const refund = pay('evt_p5', 'payment.refunded', 'pay_3', 12 * DAY)
    expect(accessAfter(record, [...BEGUN, ...UPGRADED])).toEqual(['pro_b'])
    expect(accessAfter(record, [...BEGUN, ...UPGRADED, refund])).toEqual(['pro_a'])
  })

  it('a renewal that nobody told depends on its own payment, not on the charge of an upgrade after it', () => {
    const record = subscriptionRecord({ ...RENEWED, productId: 'pro_b', updatedAt: isoMinute(45 * DAY) })
    const charge = ['payment.authorized', 'payment.succeeded', 'payment.refunded'] as const
    const stored = [
      ...BEGUN,
      PAID_AGAIN,
      ...charge.map((type, i) => pay(`evt_c${i}`, type, 'pay_3', 40 * DAY + i, { productId: 'pro_b' })),
    ]
    expect(accessAfter(record, stored.slice(0, -1))).toEqual(['pro_b'])
    expect(accessAfter(record, stored)).toEqual(['pro_a'])
    expect(accessAfter(record, [...stored, pay('evt_r', 'payment.refunded', 'pay_2', 41 * DAY)])).toEqual([])
  })

  it('a term that a webhook showed the end of still ends', () => {
    const last = { cycles: { current: 1, total: 1 }, expiresAt: minute(PERIOD) }
    const begun = [BEGUN[0] as NormalizedEvent, sub('evt_s1', 'subscription.created', 1, last)]
    const record = subscriptionRecord({ totalCycles: 1, currentCycleDueAt: null, cancelAtPeriodEnd: true })
    expect(accessAfter(record, begun)).toEqual([])
  })
})
