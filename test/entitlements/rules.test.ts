import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { NormalizedEvent, PaymentEvent, SubscriptionEvent } from '../../src/provider/event.js'
import { minute, paymentEvent, subscriptionEvent } from './events.js'
import { foldAll, foldedEntitlements } from './fold-all.js'
import { plainSources } from './plain/ask.js'
import { plainEntitlements } from './plain/entitlements.js'

type Events = readonly NormalizedEvent[]

const READINGS = [
  { name: 'the fold', read: foldedEntitlements },
  {
    name: 'the plain reading',
    read: (events: Events, policy: Policy, now: number) =>
      plainEntitlements(plainSources(events, policy), now),
  },
]

const DAY = 24 * 60

function pay(type: PaymentEvent['type'], paymentId: string, at: number, told: Partial<PaymentEvent> = {}) {
  const own = { createdAt: minute(at), rail: 'card', subscriptionId: 'sub_1' } as const
  return paymentEvent({ type, paymentId, ...own, ...told })
}

function sub(type: SubscriptionEvent['type'], at: number, told: Partial<SubscriptionEvent> = {}) {
  return subscriptionEvent({ type, createdAt: minute(at), ...told })
}

const BEGUN = [pay('payment.authorized', 'pay_1', 0), sub('subscription.created', 1)]

describe.each(READINGS)('the rules of a subscription, by $name', ({ read }) => {
  /** The status of each product as of the newest event, or of a later minute. */
  function statuses(events: Events, told: { policy?: Partial<Policy>; at?: number } = {}) {
    const newest = Math.max(...events.map(({ createdAt }) => createdAt))
    const now = told.at === undefined ? newest : minute(told.at)
    const answers = read(events, { ...DOCUMENTED_POLICY, ...told.policy }, now)
    return Object.fromEntries(answers.map(({ productId, status }) => [productId, status]))
  }

  it('1: a grant while another payment holds access changes nothing', () => {
    const events = [...BEGUN, pay('payment.authorized', 'pay_2', 5 * DAY)]
    expect(statuses([...events, pay('payment.refunded', 'pay_2', 6 * DAY)])).toEqual({ pro_a: 'active' })
    expect(statuses([...events, pay('payment.refunded', 'pay_1', 6 * DAY)])).toEqual({ pro_a: 'refunded' })
  })

  it('2: the failure of a payment that holds nothing ends nothing, unless the policy says so', () => {
    const events = [...BEGUN, pay('payment.failed', 'pay_2', 30 * DAY)]
    expect(statuses(events)).toEqual({ pro_a: 'active' })
    expect(statuses(events, { policy: { failedRenewal: 'revoke' } })).toEqual({ pro_a: 'failed' })
  })

  it('2: after a failure the payment may come good again; after a refund never', () => {
    const failed = [...BEGUN, pay('payment.failed', 'pay_1', 10), pay('payment.authorized', 'pay_1', 20)]
    expect(statuses(failed)).toEqual({ pro_a: 'active' })
    const refunded = [...BEGUN, pay('payment.refunded', 'pay_1', 10), pay('payment.authorized', 'pay_1', 20)]
    expect(statuses(refunded)).toEqual({ pro_a: 'refunded' })
  })

  it('2: a failed payment does not come good by what only informs', () => {
    const events = [
      ...BEGUN,
      pay('payment.authorized', 'pay_2', 30 * DAY),
      pay('payment.failed', 'pay_2', 30 * DAY + 1),
      pay('payment.settled', 'pay_2', 30 * DAY + 2),
      sub('subscription.renewed', 30 * DAY + 3),
    ]
    expect(statuses([...events, pay('payment.refunded', 'pay_1', 31 * DAY)])).toEqual({ pro_a: 'refunded' })
  })

  it('3: success that names no payment pays no cycle', () => {
    const events = [
      ...BEGUN,
      pay('payment.authorized', 'pay_2', 30 * DAY - 10),
      pay('payment.succeeded', 'pay_2', 30 * DAY - 1, { paymentId: null }),
      sub('subscription.renewed', 30 * DAY),
    ]
    expect(statuses([...events, pay('payment.refunded', 'pay_2', 31 * DAY)])).toEqual({ pro_a: 'refunded' })
  })

  it.each([
    ['evt_a', 'evt_b', 'refunded', 'active'],
    ['evt_b', 'evt_a', 'active', 'refunded'],
  ])('3: of two payments at one instant, granted by %s and succeeded by %s, the first id paid', (...told) => {
    const [granted, succeeded, afterRefundOfGranted, afterRefundOfSucceeded] = told
    const events = [
      ...BEGUN,
      pay('payment.authorized', 'pay_2', 30 * DAY, { id: granted }),
      pay('payment.succeeded', 'pay_3', 30 * DAY, { id: succeeded }),
      sub('subscription.renewed', 30 * DAY + 1),
    ]
    const refundOf = (paymentId: string) => pay('payment.refunded', paymentId, 31 * DAY)
    expect(statuses([...events, refundOf('pay_2')])).toEqual({ pro_a: afterRefundOfGranted })
    expect(statuses([...events, refundOf('pay_3')])).toEqual({ pro_a: afterRefundOfSucceeded })
  })

  it('3: the payment that a cycle event names counts, however far away it is', () => {
    const named = sub('subscription.renewed', 30 * DAY, { paymentId: 'pay_2' })
    const events = [...BEGUN, pay('payment.authorized', 'pay_2', 20 * DAY), named]
    expect(statuses([...events, pay('payment.refunded', 'pay_2', 31 * DAY)])).toEqual({ pro_a: 'refunded' })
  })

  it.each([
    [DAY, 'refunded'],
    [DAY + 1, 'active'],
  ])('3: a payment %i minutes before the cycle event: after its refund, %s', (before, status) => {
    const paid = pay('payment.authorized', 'pay_2', 30 * DAY - before)
    const events = [...BEGUN, paid, sub('subscription.renewed', 30 * DAY)]
    expect(statuses([...events, pay('payment.refunded', 'pay_2', 31 * DAY)])).toEqual({ pro_a: status })
  })

  it('3: of two payments as near as each other, the earlier one paid the cycle', () => {
    const events = [
      ...BEGUN,
      pay('payment.authorized', 'pay_2', 30 * DAY - 5),
      sub('subscription.renewed', 30 * DAY),
      pay('payment.authorized', 'pay_3', 30 * DAY + 5),
    ]
    expect(statuses([...events, pay('payment.refunded', 'pay_2', 31 * DAY)])).toEqual({ pro_a: 'refunded' })
    expect(statuses([...events, pay('payment.refunded', 'pay_3', 31 * DAY)])).toEqual({ pro_a: 'active' })
  })

  it('3: a payment that comes after its cycle event takes over when it comes', () => {
    const events = [
      ...BEGUN,
      sub('subscription.renewed', 30 * DAY),
      pay('payment.authorized', 'pay_2', 30 * DAY + 5),
    ]
    expect(statuses([...events, pay('payment.refunded', 'pay_1', 31 * DAY)])).toEqual({ pro_a: 'active' })
    expect(statuses([...events, pay('payment.refunded', 'pay_2', 31 * DAY)])).toEqual({ pro_a: 'refunded' })
  })

  it('3: a cycle without a payment gives access on its own word, unless the policy lets it only inform', () => {
    const events = [sub('subscription.created', 0)]
    expect(statuses(events)).toEqual({ pro_a: 'active' })
    expect(statuses(events, { policy: { paidCycle: 'informs' } })).toEqual({})
  })

  it('4: an expired subscription comes back by a payment made after it, never by an older one', () => {
    const expired = [...BEGUN, sub('subscription.expired', 40 * DAY)]
    expect(statuses([...expired, pay('checkout.succeeded', 'pay_1', 41 * DAY)])).toEqual({ pro_a: 'expired' })
    expect(statuses([...expired, pay('payment.authorized', 'pay_9', 41 * DAY)])).toEqual({ pro_a: 'active' })
  })

  it('5: a cancellation waits for the period end only if it says so, or the policy does', () => {
    const canceled = (cancelAtPeriodEnd: boolean) => [
      ...BEGUN,
      sub('subscription.canceled', 100, { cancelAtPeriodEnd, expiresAt: minute(30 * DAY) }),
    ]
    expect(statuses(canceled(false))).toEqual({ pro_a: 'canceled' })
    expect(statuses(canceled(true))).toEqual({ pro_a: 'ending' })
    expect(statuses(canceled(false), { policy: { canceled: 'period_end' } })).toEqual({ pro_a: 'ending' })
    expect(statuses(canceled(true), { at: 30 * DAY })).toEqual({ pro_a: 'canceled' })
  })

  it('5: a second cancellation can only bring the end forward, and a renewal lifts it', () => {
    const until = (day: number) => ({ cancelAtPeriodEnd: true, expiresAt: minute(day * DAY) })
    const twice = [
      ...BEGUN,
      sub('subscription.canceled', 100, until(20)),
      sub('subscription.canceled', 200, until(30)),
    ]
    expect(statuses(twice, { at: 20 * DAY })).toEqual({ pro_a: 'canceled' })
    const renewed = [
      ...twice,
      pay('payment.authorized', 'pay_2', 10 * DAY),
      sub('subscription.renewed', 10 * DAY),
    ]
    expect(statuses(renewed, { at: 40 * DAY })).toEqual({ pro_a: 'active' })
  })

  it('5: a cancellation at the instant of a renewal has the last word', () => {
    const events = [...BEGUN, sub('subscription.renewed', 30 * DAY), sub('subscription.canceled', 30 * DAY)]
    expect(statuses(events)).toEqual({ pro_a: 'canceled' })
  })

  it('6: a fixed term ends with its last period, unless the policy keeps it', () => {
    const last = sub('subscription.renewed', 30 * DAY, {
      cycles: { current: 2, total: 2 },
      expiresAt: minute(60 * DAY),
    })
    const events = [...BEGUN, last]
    expect(statuses(events)).toEqual({ pro_a: 'ending' })
    expect(statuses(events, { at: 60 * DAY })).toEqual({ pro_a: 'completed' })
    expect(statuses(events, { at: 60 * DAY, policy: { completed: 'keep' } })).toEqual({ pro_a: 'active' })
  })

  it('7: access lapses the configured time after the newest period end, if nothing else is heard', () => {
    const created = sub('subscription.created', 1, { expiresAt: minute(30 * DAY) })
    const policy = { lapseAfter: 45 * DAY * 60_000 }
    const events = [pay('payment.authorized', 'pay_1', 0), created]
    expect(statuses(events, { policy, at: 75 * DAY - 1 })).toEqual({ pro_a: 'ending' })
    expect(statuses(events, { policy, at: 75 * DAY })).toEqual({ pro_a: 'lapsed' })
    expect(statuses(events, { at: 75 * DAY })).toEqual({ pro_a: 'active' })
  })

  it('8: what is past due shows so while it stays active, until renewed', () => {
    const pastDue = [...BEGUN, sub('subscription.past_due', 30 * DAY)]
    const now = minute(30 * DAY)
    expect(read(pastDue, DOCUMENTED_POLICY, now)).toMatchObject([{ status: 'active', pastDue: true }])
    const renewed = [...pastDue, sub('subscription.renewed', 31 * DAY)]
    expect(read(renewed, DOCUMENTED_POLICY, minute(31 * DAY))).toMatchObject([{ pastDue: false }])
  })

  it('product: a plan change moves access in one step, and counts not while its charge is taken back', () => {
    const changed = sub('subscription.updated', 5 * DAY, { productId: 'pro_b' })
    const events = [...BEGUN, pay('payment.authorized', 'pay_up', 5 * DAY - 1), changed]
    expect(statuses(events)).toEqual({ pro_a: 'moved', pro_b: 'active' })
    const refunded = [...events, pay('payment.refunded', 'pay_up', 6 * DAY)]
    expect(statuses(refunded)).toEqual({ pro_a: 'active', pro_b: 'moved' })
  })

  it('product: where no start, renewal or update names one, other events do, best first', () => {
    const settled = pay('payment.settled', 'pay_1', 20, { productId: 'pro_b' })
    const nameless = sub('subscription.created', 0, { productId: null })
    const granted = pay('payment.authorized', 'pay_1', 0)
    expect(statuses([nameless, granted, settled])).toEqual({ pro_a: 'active' })
    expect(statuses([nameless, settled])).toEqual({ pro_b: 'active' })
    const pastDue = sub('subscription.past_due', 30 * DAY, { productId: 'pro_c' })
    expect(statuses([nameless, granted, settled, pastDue])).toEqual({ pro_c: 'active' })
    expect(statuses([...BEGUN, granted, pastDue])).toEqual({ pro_a: 'active' })
  })

  it('product: a downgrade at the renewal has no charge that a refund could reach', () => {
    const renewal = [pay('payment.authorized', 'pay_2', 30 * DAY), sub('subscription.renewed', 30 * DAY)]
    const events = [...BEGUN, ...renewal, sub('subscription.updated', 30 * DAY + 1, { productId: 'pro_b' })]
    expect(statuses(events)).toEqual({ pro_a: 'moved', pro_b: 'active' })
    const refunded = [...events, pay('payment.refunded', 'pay_2', 31 * DAY)]
    expect(statuses(refunded)).toEqual({ pro_a: 'moved', pro_b: 'refunded' })
    const paidAgain = [...refunded, pay('payment.authorized', 'pay_3', 40 * DAY)]
    expect(statuses(paidAgain)).toEqual({ pro_a: 'moved', pro_b: 'active' })
  })

  it('product: a refunded plan change gives back the plan before it, be that changed to or not', () => {
    const toB = [
      pay('payment.authorized', 'pay_b', 5 * DAY - 1),
      sub('subscription.updated', 5 * DAY, { productId: 'pro_b' }),
    ]
    const toC = [
      pay('payment.authorized', 'pay_c', 10 * DAY - 1),
      sub('subscription.updated', 10 * DAY, { productId: 'pro_c' }),
    ]
    const backToB = [...BEGUN, ...toB, ...toC, pay('payment.refunded', 'pay_c', 11 * DAY)]
    expect(statuses(backToB)).toEqual({ pro_a: 'moved', pro_b: 'active', pro_c: 'moved' })
    const backToA = [...backToB, pay('payment.refunded', 'pay_b', 12 * DAY)]
    expect(statuses(backToA)).toEqual({ pro_a: 'active', pro_b: 'moved', pro_c: 'moved' })
  })

  it('product: a renewal that names another plan was charged by its cycle, and by no payment beside it', () => {
    const renewal = [
      pay('payment.authorized', 'pay_2', 30 * DAY),
      sub('subscription.renewed', 30 * DAY, { productId: 'pro_b' }),
      pay('payment.authorized', 'pay_beside', 30 * DAY + 60),
    ]
    const events = [...BEGUN, ...renewal, pay('payment.refunded', 'pay_beside', 31 * DAY)]
    expect(statuses(events)).toEqual({ pro_a: 'moved', pro_b: 'active' })
  })

  it('product: naming the plan in force again is no change of it, and stands when the change is refunded', () => {
    const toB = [
      pay('payment.authorized', 'pay_b', 5 * DAY - 1),
      sub('subscription.updated', 5 * DAY, { productId: 'pro_b' }),
      sub('subscription.updated', 5 * DAY + 60, { productId: 'pro_b' }),
    ]
    const events = [...BEGUN, ...toB, pay('payment.refunded', 'pay_b', 6 * DAY)]
    expect(statuses(events)).toEqual({ pro_a: 'moved', pro_b: 'active' })
  })
})

it('3: the cycles for which no payment is known are counted, since no refund can reach them', () => {
  const renewed = [sub('subscription.created', 0), sub('subscription.renewed', 30 * DAY)]
  const paid = [pay('payment.authorized', 'pay_3', 60 * DAY), sub('subscription.renewed', 60 * DAY)]
  expect(foldAll([...renewed, ...paid], DOCUMENTED_POLICY)).toMatchObject([{ cyclesWithoutPayment: 2 }])
})
