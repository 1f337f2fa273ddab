import { describe, expect, it } from 'vitest'
import { type FoldableEvent, isGrantAct } from '../../src/entitlements/kept-event.js'
import type { Block, SourceKey } from '../../src/entitlements/model.js'
import type { PaymentEvent } from '../../src/provider/event.js'
import { minute, START } from './events.js'
import { explainAt, once, PAYMENT, pay, type Sources, SUBSCRIPTION, sub } from './explained.js'
import { byHand } from './manual-events.js'

const MANUAL: SourceKey = { kind: 'manual', id: 'cus_1/pro_a' }
const PAYMENT_2: SourceKey = { kind: 'payment', id: 'pay_2' }

const begun = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 0)]

function grantedUntil(end: number): FoldableEvent[] {
  return [byHand('manual.granted', 0, { until: minute(end) })].filter(isGrantAct)
}

/** The same as `once`, of another payment than `pay_1`. */
function twice(id: string, type: PaymentEvent['type'], at: number): PaymentEvent {
  return pay(id, type, 'pay_2', at, { subscriptionId: null })
}

describe('the summary', () => {
  it('says by what there is access, and that no end is known', () => {
    expect(explainAt(10, [[SUBSCRIPTION, begun]]).summary).toBe(
      'cus_1 has access to pro_a since 2026-01-01T00:00:00.000Z, by subscription sub_1. No end is known.',
    )
  })

  it('calls what was granted by hand so', () => {
    const granted = explainAt(10, [[MANUAL, grantedUntil(1000)]])
    expect(granted.summary).toBe(
      'cus_1 has access to pro_a since 2026-01-01T00:00:00.000Z, by a grant by hand. It ends at 2026-01-01T16:40:00.000Z: its fixed time is over.',
    )
  })

  it('names all that gives access now, and nothing else', () => {
    const sources: Sources = [
      [SUBSCRIPTION, begun],
      [PAYMENT, [once('evt_3', 'payment.authorized', 5)]],
      [PAYMENT_2, [twice('evt_4', 'payment.authorized', 1), twice('evt_5', 'payment.refunded', 2)]],
    ]
    expect(explainAt(10, sources).summary).toBe(
      'cus_1 has access to pro_a since 2026-01-01T00:00:00.000Z, by payment pay_1 and subscription sub_1. No end is known.',
    )
  })

  it('tells of the last of several ends, and why it comes', () => {
    const canceled = sub('evt_3', 'subscription.canceled', 1, {
      cancelAtPeriodEnd: true,
      expiresAt: minute(20),
    })
    const { summary } = explainAt(10, [
      [SUBSCRIPTION, [...begun, canceled]],
      [MANUAL, grantedUntil(60)],
    ])
    expect(summary).toContain('It ends at 2026-01-01T01:00:00.000Z: its fixed time is over.')
  })

  it('says when access ends, and why', () => {
    const canceled = sub('evt_3', 'subscription.canceled', 100, {
      cancelAtPeriodEnd: true,
      expiresAt: minute(43200),
    })
    const { summary, ends } = explainAt(200, [[SUBSCRIPTION, [...begun, canceled]]])
    expect(summary).toContain('It ends at 2026-01-31T00:00:00.000Z: the subscription was canceled.')
    expect(ends).toEqual([
      {
        source: SUBSCRIPTION,
        at: minute(43200),
        reason: 'canceled',
        eventId: 'evt_3',
        sentence:
          'Access by subscription sub_1 ends at 2026-01-31T00:00:00.000Z: the subscription was canceled.',
      },
    ])
  })

  it('says that a payment is overdue while access goes on', () => {
    const overdue = sub('evt_3', 'subscription.past_due', 100)
    expect(explainAt(200, [[SUBSCRIPTION, [...begun, overdue]]]).summary).toContain('A payment is overdue')
  })

  it('says since when there is no access, why, and by which event', () => {
    const refund = pay('evt_3', 'payment.refunded', 'pay_1', 100)
    expect(explainAt(200, [[SUBSCRIPTION, [...begun, refund]]]).summary).toBe(
      'cus_1 has no access to pro_a since 2026-01-01T01:40:00.000Z: the payment was refunded (evt_3 of subscription sub_1).',
    )
  })

  it('tells of what ended last, where several sources have ended', () => {
    const { summary } = explainAt(30, [
      [PAYMENT, [once('evt_3', 'payment.authorized', 0), once('evt_4', 'payment.refunded', 20)]],
      [SUBSCRIPTION, [...begun, sub('evt_5', 'subscription.expired', 10)]],
    ])
    expect(summary).toBe(
      'cus_1 has no access to pro_a since 2026-01-01T00:20:00.000Z: the payment was refunded (evt_4 of payment pay_1).',
    )
  })

  it('says that access had not begun at the instant asked about', () => {
    const { summary, entitlement } = explainAt(-1, [[SUBSCRIPTION, begun]])
    expect(entitlement.status).toBe('none')
    expect(summary).toBe('cus_1 had not been given access to pro_a by 2025-12-31T23:59:00.000Z.')
  })

  it('tells of payments that never gave anything', () => {
    const { summary, sources } = explainAt(10, [[PAYMENT, [once('evt_1', 'payment.failed', 0)]]])
    expect(sources).toMatchObject([{ id: 'pay_1', intervals: [], events: [{ id: 'evt_1' }] }])
    expect(summary).toBe(
      'cus_1 has never had access to pro_a. Failure of pay_1: access did not depend on pay_1.',
    )
  })

  it('tells of the newest event of any source, where none gave anything', () => {
    const { summary } = explainAt(30, [
      [PAYMENT, [once('evt_1', 'payment.failed', 20)]],
      [PAYMENT_2, [twice('evt_2', 'payment.failed', 10), twice('evt_3', 'payment.settled', 25)]],
    ])
    expect(summary).toBe(
      'cus_1 has never had access to pro_a. Failure of pay_1: access did not depend on pay_1.',
    )
  })

  it('tells of what only informs where there is nothing else', () => {
    const events = [
      once('evt_1', 'checkout.initiated', 0),
      once('evt_2', 'payment.settled', 1),
      once('evt_3', 'payment.completed', 2),
    ]
    expect(explainAt(30, [[PAYMENT, events]]).summary).toBe(
      'cus_1 has never had access to pro_a. Completion of pay_1: for information only, since the policy lets it change nothing.',
    )
  })

  it('does not take access to another product for access to this one', () => {
    const events = [
      once('evt_1', 'payment.authorized', 0),
      once('evt_2', 'payment.settled', 1, { productId: 'pro_b' }),
    ]
    expect(explainAt(30, [[PAYMENT, events]]).summary).toBe(
      'cus_1 has never had access to pro_a. Authorization of pay_1: pay_1 counts as paid from here on. Access to pro_b begins.',
    )
  })

  it('leaves out sources that are about other products alone', () => {
    const other = once('evt_1', 'payment.authorized', 0, { productId: 'pro_z' })
    const { summary, sources } = explainAt(10, [[PAYMENT, [other]]])
    expect(sources).toEqual([])
    expect(summary).toBe('cus_1 has never had access to pro_a: no event of theirs is about it.')
  })

  it('says that nothing is known of a customer never seen', () => {
    expect(explainAt(10, [], { isKnown: false })).toEqual({
      customerId: 'cus_1',
      productId: 'pro_a',
      environment: 'live',
      asOf: minute(10),
      entitlement: {
        productId: 'pro_a',
        active: false,
        status: 'none',
        since: null,
        until: null,
        pastDue: false,
        sources: [],
      },
      summary: 'Nothing is known of cus_1 in live: no event names them.',
      sources: [],
      held: [],
      blocks: [],
      erasures: [],
      ends: [],
    })
  })

  it('says that a grant waits which names no product, since it may be for this one', () => {
    const { summary, sources } = explainAt(10, [
      [PAYMENT, [once('evt_1', 'payment.authorized', 0, { productId: null })]],
    ])
    expect(summary).toBe('cus_1 has never had access to pro_a. One event waits.')
    expect(sources).toMatchObject([
      { id: 'pay_1', events: [{ id: 'evt_1', note: { reason: 'product_unknown' }, changes: [] }] },
    ])
  })

  it('says that events wait, and lists them in the order in which they happened', () => {
    const waiting = {
      event: pay('evt_1', 'payment.succeeded', null, 0, { subscriptionId: null }),
      receivedAt: START,
      disposition: 'held',
      source: null,
      reason: 'source_unknown',
    } as const
    const bare = once('evt_2', 'checkout.succeeded', 1, { railProof: null })
    const { summary, held } = explainAt(10, [[PAYMENT, [bare]]], { holds: [waiting] })
    expect(summary).toBe('cus_1 has never had access to pro_a. 2 events wait.')
    expect(held).toMatchObject([
      {
        id: 'evt_1',
        source: null,
        reason: 'source_unknown',
        sentence: 'Success: waits, since it names neither a payment nor a subscription.',
      },
      { id: 'evt_2', source: PAYMENT, reason: 'rail_unknown' },
    ])
  })

  it('tells of blocks before anything else', () => {
    const blocks: Block[] = [{ productId: null, from: minute(5), until: null }]
    const told = explainAt(10, [[SUBSCRIPTION, begun]], { blocks })
    expect(told.summary).toBe('cus_1 is blocked from pro_a.')
    expect(told.blocks).toMatchObject([
      { sentence: 'Every product is blocked from 2026-01-01T00:05:00.000Z until it is unblocked.' },
    ])
  })
})
