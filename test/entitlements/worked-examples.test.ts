import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import type { NormalizedEvent, PaymentEvent, SubscriptionEvent } from '../../src/provider/event.js'
import { minute, paymentEvent, START, subscriptionEvent } from './events.js'
import { foldedEntitlements, foldedHolds } from './fold-all.js'
import { heldOf, plainSources } from './plain/ask.js'
import { plainEntitlements } from './plain/entitlements.js'

const READINGS = [
  {
    name: 'the fold',
    entitlements: (events: readonly NormalizedEvent[], now: number) =>
      foldedEntitlements(events, DOCUMENTED_POLICY, now),
    holds: (events: readonly NormalizedEvent[]) => foldedHolds(events, DOCUMENTED_POLICY),
  },
  {
    name: 'the plain reading',
    entitlements: (events: readonly NormalizedEvent[], now: number) =>
      plainEntitlements(plainSources(events, DOCUMENTED_POLICY), now),
    holds: (events: readonly NormalizedEvent[]) => heldOf(events, DOCUMENTED_POLICY),
  },
]

function card(
  type: PaymentEvent['type'],
  paymentId: string,
  at: number,
  fields: Partial<PaymentEvent> = {},
): PaymentEvent {
  const subscriptionId = 'sub_1'
  return paymentEvent({ type, paymentId, createdAt: minute(at), rail: 'card', subscriptionId, ...fields })
}

function sub(
  type: SubscriptionEvent['type'],
  at: number,
  fields: Partial<SubscriptionEvent> = {},
): SubscriptionEvent {
  return subscriptionEvent({ type, createdAt: minute(at), ...fields })
}

const begun = [card('payment.authorized', 'pay_1', 0), sub('subscription.created', 0)]

describe.each(READINGS)('the worked examples, by $name', ({ entitlements, holds }) => {
  /** Who has what as of the newest event. */
  const outcome = (events: readonly NormalizedEvent[]) =>
    entitlements(events, Math.max(...events.map(({ createdAt }) => createdAt)))

  it('1: a declined renewal keeps access until the subscription expires', () => {
    const dunning = [...begun, card('payment.failed', 'pay_2', 43200), sub('subscription.past_due', 43200)]
    expect(outcome(dunning)).toMatchObject([{ productId: 'pro_a', status: 'active', pastDue: true }])
    const ended = [...dunning, sub('subscription.expired', 86400)]
    expect(outcome(ended)).toMatchObject([{ active: false, status: 'expired', until: minute(86400) }])
  })

  it("2: only the refund of the running cycle's payment ends access", () => {
    const renewed = [
      ...begun,
      card('payment.authorized', 'pay_2', 43200),
      sub('subscription.renewed', 43200),
      card('payment.refunded', 'pay_1', 43300),
    ]
    expect(outcome(renewed)).toMatchObject([{ status: 'active', since: minute(0), until: null }])
    const refunded = [...renewed, card('payment.refunded', 'pay_2', 43400)]
    expect(outcome(refunded)).toMatchObject([{ status: 'refunded', until: minute(43400) }])
  })

  it('3: a refunded upgrade gives the old plan back; a refunded first payment ends both', () => {
    const upgraded = [
      ...begun,
      card('payment.authorized', 'pay_3', 4000),
      sub('subscription.updated', 4001, { productId: 'pro_b' }),
    ]
    expect(outcome(upgraded)).toMatchObject([
      { productId: 'pro_a', status: 'moved', until: minute(4001) },
      { productId: 'pro_b', status: 'active', since: minute(4001) },
    ])
    expect(outcome([...upgraded, card('payment.refunded', 'pay_3', 5000)])).toMatchObject([
      { productId: 'pro_a', status: 'active', since: minute(5000) },
      { productId: 'pro_b', active: false, until: minute(5000) },
    ])
    expect(outcome([...upgraded, card('payment.refunded', 'pay_1', 5000)])).toMatchObject([
      { productId: 'pro_a', active: false },
      { productId: 'pro_b', status: 'refunded', until: minute(5000) },
    ])
  })

  it('4: one of two one-time payments for a product still holds it', () => {
    const alone = { subscriptionId: null }
    const events = [
      card('payment.authorized', 'pay_1', 0, alone),
      card('payment.authorized', 'pay_2', 10, alone),
      card('payment.refunded', 'pay_1', 20, alone),
    ]
    expect(outcome(events)).toMatchObject([{ status: 'active', since: minute(0), until: null }])
  })

  it('5: crypto is granted on confirmation and not taken back by a refund', () => {
    const checkout = paymentEvent({
      type: 'checkout.succeeded',
      paymentId: 'pay_1',
      railProof: { rail: 'crypto', strength: 1 },
    })
    const paid = paymentEvent({ type: 'payment.succeeded', paymentId: 'pay_1', createdAt: minute(1) })
    const refund = paymentEvent({ type: 'payment.refunded', paymentId: 'pay_1', createdAt: minute(2) })
    expect(outcome([checkout])).toEqual([])
    expect(holds([checkout])).toEqual({})
    expect(outcome([checkout, paid])).toMatchObject([{ status: 'active', since: minute(1) }])
    expect(outcome([checkout, paid, refund])).toMatchObject([{ status: 'active', since: minute(1) }])
  })

  it('6: a grant waits for its customer and then counts since it happened', () => {
    const legacy = { paymentId: 'pay_1', generation: 'v2' } as const
    const nobody = paymentEvent({ ...legacy, type: 'checkout.succeeded', customerId: null })
    const somebody = paymentEvent({ ...legacy, type: 'payment.succeeded', createdAt: minute(5) })
    expect(outcome([nobody])).toEqual([])
    expect(holds([nobody])).toEqual({ [nobody.id]: 'customer_unknown' })
    expect(outcome([nobody, somebody])).toMatchObject([{ customerId: 'cus_1', active: true, since: START }])
    expect(holds([nobody, somebody])).toEqual({})
  })

  it('7: a cancellation ends access at once or at the end of the period that it shows', () => {
    const canceled = (cancelAtPeriodEnd: boolean) =>
      sub('subscription.canceled', 100, { cancelAtPeriodEnd, expiresAt: minute(43200) })
    expect(outcome([...begun, canceled(false)])).toMatchObject([{ status: 'canceled', until: minute(100) }])
    expect(outcome([...begun, canceled(true)])).toMatchObject([{ status: 'ending', until: minute(43200) }])
    expect(entitlements([...begun, canceled(true)], minute(43200))).toMatchObject([
      { status: 'canceled', until: minute(43200) },
    ])
  })

  it('8: an old failure that arrives late does not end a newer success', () => {
    const alone = { subscriptionId: null }
    const events = [card('payment.authorized', 'pay_1', 9, alone), card('payment.failed', 'pay_1', 5, alone)]
    expect(outcome(events)).toMatchObject([{ status: 'active', since: minute(9) }])
  })

  it('9: a canceled checkout voids what it granted', () => {
    const legacy = { paymentId: 'pay_1', generation: 'v2' } as const
    const events = [
      paymentEvent({ ...legacy, type: 'checkout.succeeded' }),
      paymentEvent({ ...legacy, type: 'checkout.canceled', createdAt: minute(5) }),
    ]
    expect(outcome(events)).toMatchObject([{ active: false, status: 'voided', until: minute(5) }])
  })

  it('10: a fixed term runs to the end of its last period', () => {
    const cycle = (current: number) => ({
      cycles: { current, total: 3 },
      expiresAt: minute(current * 43200),
    })
    const events = [
      sub('subscription.created', 0, cycle(1)),
      sub('subscription.renewed', 43200, cycle(2)),
      sub('subscription.renewed', 86400, cycle(3)),
    ]
    expect(outcome(events)).toMatchObject([{ status: 'ending', until: minute(129600) }])
    expect(entitlements(events, minute(129600))).toMatchObject([
      { active: false, status: 'completed', until: minute(129600) },
    ])
  })

  it('11: a rail learned later does not take away what was granted without one', () => {
    const events = [
      paymentEvent({ type: 'payment.succeeded', paymentId: 'pay_1' }),
      paymentEvent({ type: 'payment.settled', paymentId: 'pay_1', createdAt: minute(4320) }),
    ]
    expect(outcome(events)).toMatchObject([{ status: 'active', since: START, until: null }])
  })

  it('12: an off-session renewal stands on its own payment, though only its success is reported', () => {
    const renewed = [
      ...begun,
      card('payment.succeeded', 'pay_2', 43200, { generation: 'v2' }),
      sub('subscription.renewed', 43200, { generation: 'v2' }),
    ]
    expect(outcome([...renewed, card('payment.refunded', 'pay_1', 43300)])).toMatchObject([
      { status: 'active', since: minute(0) },
    ])
    expect(outcome([...renewed, card('payment.refunded', 'pay_2', 43300)])).toMatchObject([
      { status: 'refunded', until: minute(43300) },
    ])
  })

  it('13: a subscription of which no payment is known stands on itself', () => {
    const created = [sub('subscription.created', 0)]
    expect(outcome(created)).toMatchObject([{ status: 'active', since: minute(0) }])
    expect(outcome([...created, sub('subscription.expired', 10)])).toMatchObject([
      { status: 'expired', until: minute(10) },
    ])
  })

  it('14: an expired subscription revives by a new payment, never by an old one', () => {
    const crypto = (paymentId: string, at: number) =>
      card('payment.succeeded', paymentId, at, { railProof: { rail: 'crypto', strength: 3 } })
    const expired = [crypto('pay_1', 0), sub('subscription.created', 1), sub('subscription.expired', 46000)]
    const revived = [...expired, crypto('pay_9', 46001), sub('subscription.renewed', 46002)]
    expect(outcome(revived)).toMatchObject([{ status: 'active', since: minute(46001) }])
    expect(outcome([...expired, crypto('pay_1', 46001)])).toMatchObject([
      { status: 'expired', until: minute(46000) },
    ])
  })
})
