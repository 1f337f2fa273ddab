import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { NormalizedEvent, PaymentEvent, SubscriptionEvent } from '../../src/provider/event.js'
import { minute, paymentEvent, START, subscriptionEvent } from './events.js'
import { foldAll, foldedEntitlements, foldedHolds } from './fold-all.js'
import { heldOf, plainSources } from './plain/ask.js'
import { plainEntitlements } from './plain/entitlements.js'

type Events = readonly NormalizedEvent[]

const READINGS = [
  { name: 'the fold', read: foldedEntitlements, holds: foldedHolds },
  {
    name: 'the plain reading',
    read: (events: Events, policy: Policy, now: number) =>
      plainEntitlements(plainSources(events, policy), now),
    holds: heldOf,
  },
]

const DAY = 24 * 60
const MONTH = 30 * DAY
const UNPROVEN = { railProof: null } as const
const CRYPTO = { railProof: { rail: 'crypto', strength: 3 } } as const

/** Of a payment by card of `sub_1`. */
function pay(type: PaymentEvent['type'], paymentId: string, at: number, fields: Partial<PaymentEvent> = {}) {
  const own = { createdAt: minute(at), rail: 'card', subscriptionId: 'sub_1' } as const
  return paymentEvent({ type, paymentId, ...own, ...fields })
}

/** The same of a one-time payment. */
function once(type: PaymentEvent['type'], paymentId: string, at: number, fields: Partial<PaymentEvent> = {}) {
  return pay(type, paymentId, at, { subscriptionId: null, ...fields })
}

function sub(type: SubscriptionEvent['type'], at: number, fields: Partial<SubscriptionEvent> = {}) {
  return subscriptionEvent({ type, createdAt: minute(at), ...fields })
}

const BEGUN = [pay('payment.authorized', 'pay_1', 0), sub('subscription.created', 0)]
const RENEWED = [
  ...BEGUN,
  pay('payment.authorized', 'pay_2', MONTH),
  sub('subscription.renewed', MONTH, { expiresAt: minute(2 * MONTH) }),
]
const UPGRADED = [
  ...BEGUN,
  pay('payment.authorized', 'pay_3', 4000),
  sub('subscription.updated', 4001, { productId: 'pro_b' }),
]
const UNTIL_MONTH = { expiresAt: minute(MONTH), cancelAtPeriodEnd: true }

const newestIn = (events: Events) => Math.max(...events.map(({ createdAt }) => createdAt))

/* Random histories prove all of this: what is here shows what each rule means, and that both readings mean it. */

describe.each(READINGS)('the worked examples, by $name', ({ read, holds }) => {
  const outcome = (events: Events, now = newestIn(events)) => read(events, DOCUMENTED_POLICY, now)
  const held = (events: Events) => holds(events, DOCUMENTED_POLICY)

  it('1: a declined renewal keeps access until the subscription expires', () => {
    const dunning = [...BEGUN, pay('payment.failed', 'pay_2', MONTH), sub('subscription.past_due', MONTH)]
    expect(outcome(dunning)).toMatchObject([{ productId: 'pro_a', status: 'active', pastDue: true }])
    const ended = [...dunning, sub('subscription.expired', 86400)]
    expect(outcome(ended)).toMatchObject([{ active: false, status: 'expired', until: minute(86400) }])
  })

  it("2: only the refund of the running cycle's payment ends access", () => {
    const first = [...RENEWED, pay('payment.refunded', 'pay_1', 43300)]
    expect(outcome(first)).toMatchObject([{ status: 'active', since: START, until: null }])
    const both = [...first, pay('payment.refunded', 'pay_2', 43400)]
    expect(outcome(both)).toMatchObject([{ status: 'refunded', until: minute(43400) }])
  })

  it('3: a refunded upgrade gives the old plan back; a refunded first payment ends both', () => {
    expect(outcome(UPGRADED)).toMatchObject([
      { productId: 'pro_a', status: 'moved', until: minute(4001) },
      { productId: 'pro_b', status: 'active', since: minute(4001) },
    ])
    expect(outcome([...UPGRADED, pay('payment.refunded', 'pay_3', 5000)])).toMatchObject([
      { productId: 'pro_a', status: 'active', since: minute(5000) },
      { productId: 'pro_b', active: false, until: minute(5000) },
    ])
    expect(outcome([...UPGRADED, pay('payment.refunded', 'pay_1', 5000)])).toMatchObject([
      { productId: 'pro_a', active: false },
      { productId: 'pro_b', status: 'refunded', until: minute(5000) },
    ])
  })

  it('4: one of two one-time payments for a product still holds it', () => {
    const paid = [once('payment.authorized', 'pay_1', 0), once('payment.authorized', 'pay_2', 10)]
    expect(outcome([...paid, once('payment.refunded', 'pay_1', 20)])).toMatchObject([
      { status: 'active', since: START, until: null },
    ])
  })

  it('5: crypto is granted on confirmation and not revoked by a refund', () => {
    const checkout = once('checkout.succeeded', 'pay_1', 0, { railProof: { rail: 'crypto', strength: 1 } })
    expect([outcome([checkout]), held([checkout])]).toEqual([[], {}])
    const paid = [checkout, once('payment.succeeded', 'pay_1', 1, UNPROVEN)]
    expect(outcome(paid)).toMatchObject([{ status: 'active', since: minute(1) }])
    const refunded = [...paid, once('payment.refunded', 'pay_1', 2, UNPROVEN)]
    expect(outcome(refunded)).toMatchObject([{ status: 'active', since: minute(1) }])
  })

  it('6: a grant waits for its customer and then counts since it happened', () => {
    const nobody = once('checkout.succeeded', 'pay_1', 0, { customerId: null })
    expect([outcome([nobody]), held([nobody])]).toEqual([[], { [nobody.id]: 'customer_unknown' }])
    const known = [nobody, once('payment.succeeded', 'pay_1', 5)]
    expect(outcome(known)).toMatchObject([{ customerId: 'cus_1', active: true, since: START }])
    expect(held(known)).toEqual({})
  })

  it('7: a cancellation ends access at once or at the end of the period that it shows', () => {
    const now = sub('subscription.canceled', 100, { ...UNTIL_MONTH, cancelAtPeriodEnd: false })
    expect(outcome([...BEGUN, now])).toMatchObject([{ status: 'canceled', until: minute(100) }])
    const later = [...BEGUN, sub('subscription.canceled', 100, UNTIL_MONTH)]
    expect(outcome(later)).toMatchObject([{ status: 'ending', until: minute(MONTH) }])
    expect(outcome(later, minute(MONTH))).toMatchObject([{ status: 'canceled', until: minute(MONTH) }])
  })

  it('8: an old failure that arrives late does not end a newer success', () => {
    const events = [once('payment.authorized', 'pay_1', 9), once('payment.failed', 'pay_1', 5)]
    expect(outcome(events)).toMatchObject([{ status: 'active', since: minute(9) }])
  })

  it('9: a canceled checkout voids what it granted', () => {
    const events = [once('checkout.succeeded', 'pay_1', 0), once('checkout.canceled', 'pay_1', 5)]
    expect(outcome(events)).toMatchObject([{ active: false, status: 'voided', until: minute(5) }])
  })

  it('10: a fixed term runs to the end of its last period', () => {
    const cycle = (current: number) => ({ cycles: { current, total: 3 }, expiresAt: minute(current * MONTH) })
    const events = [
      sub('subscription.created', 0, cycle(1)),
      sub('subscription.renewed', MONTH, cycle(2)),
      sub('subscription.renewed', 2 * MONTH, cycle(3)),
    ]
    expect(outcome(events)).toMatchObject([{ status: 'ending', until: minute(3 * MONTH) }])
    expect(outcome(events, minute(3 * MONTH))).toMatchObject([{ active: false, status: 'completed' }])
  })

  it('11: a rail learned later does not take away what was granted without one', () => {
    const paid = once('payment.succeeded', 'pay_1', 0, UNPROVEN)
    expect(outcome([paid, once('payment.settled', 'pay_1', 4320)])).toMatchObject([
      { status: 'active', since: START, until: null },
    ])
  })

  it('12: an off-session renewal stands on its own payment, though only its success is reported', () => {
    const renewed = [...BEGUN, pay('payment.succeeded', 'pay_2', MONTH), sub('subscription.renewed', MONTH)]
    const refunding = (refunded: string) => outcome([...renewed, pay('payment.refunded', refunded, 43300)])
    expect(refunding('pay_1')).toMatchObject([{ status: 'active', since: START }])
    expect(refunding('pay_2')).toMatchObject([{ status: 'refunded', until: minute(43300) }])
  })

  it('13: a subscription of which no payment is known stands on itself', () => {
    const created = [sub('subscription.created', 0)]
    expect(outcome(created)).toMatchObject([{ status: 'active', since: START }])
    expect(outcome([...created, sub('subscription.expired', 10)])).toMatchObject([
      { status: 'expired', until: minute(10) },
    ])
  })

  it('14: an expired subscription revives by a new payment, never by an old one', () => {
    const paid = (paymentId: string, at: number) => pay('payment.succeeded', paymentId, at, CRYPTO)
    const expired = [paid('pay_1', 0), sub('subscription.created', 1), sub('subscription.expired', 46000)]
    const revived = [...expired, paid('pay_9', 46001), sub('subscription.renewed', 46002)]
    expect(outcome(revived)).toMatchObject([{ status: 'active', since: minute(46001) }])
    expect(outcome([...expired, paid('pay_1', 46001)])).toMatchObject([
      { status: 'expired', until: minute(46000) },
    ])
  })

  it("15: a cycle's payment that failed and is paid again is what access depends on", () => {
    const paidAgain = [
      ...BEGUN,
      pay('payment.authorized', 'pay_2', MONTH),
      pay('payment.failed', 'pay_2', MONTH + 1),
      sub('subscription.renewed', MONTH + 2),
      pay('payment.authorized', 'pay_2', MONTH + 3),
    ]
    const refunding = (refunded: string) =>
      outcome([...paidAgain, pay('payment.refunded', refunded, MONTH + 100)])
    expect(refunding('pay_2')).toMatchObject([{ status: 'refunded', until: minute(MONTH + 100) }])
    expect(refunding('pay_1')).toMatchObject([{ status: 'active', since: START }])
  })

  it('16: an update that repeats the plan does not keep it from a refund of its charge', () => {
    const repeated = [
      ...UPGRADED,
      sub('subscription.updated', 4500, { productId: 'pro_b', cancelAtPeriodEnd: true }),
    ]
    expect(outcome([...repeated, pay('payment.refunded', 'pay_3', 5000)])).toMatchObject([
      { productId: 'pro_a', active: true, since: minute(5000) },
      { productId: 'pro_b', active: false, until: minute(5000) },
    ])
  })
})

describe.each(READINGS)('what the worked examples leave open, by $name', ({ read }) => {
  /** The status of each product as of the newest event, or of a later minute. */
  function statuses(events: Events, policy: Partial<Policy> = {}, at?: number) {
    const now = at === undefined ? newestIn(events) : minute(at)
    const answers = read(events, { ...DOCUMENTED_POLICY, ...policy }, now)
    return Object.fromEntries(answers.map(({ productId, status }) => [productId, status]))
  }
  const refundOf = (paymentId: string) => pay('payment.refunded', paymentId, 2 * MONTH)

  it('1: a grant while another payment holds access changes nothing', () => {
    const events = [...BEGUN, pay('payment.authorized', 'pay_2', 5 * DAY)]
    expect(statuses([...events, refundOf('pay_2')])).toEqual({ pro_a: 'active' })
    expect(statuses([...events, refundOf('pay_1')])).toEqual({ pro_a: 'refunded' })
  })

  it.each([
    ['payment.failed', 'active'],
    ['payment.refunded', 'refunded'],
  ] as const)('2: after %s, a new grant of the payment leaves access %s', (type, status) => {
    const events = [...BEGUN, pay(type, 'pay_1', 10), pay('payment.authorized', 'pay_1', 20)]
    expect(statuses(events)).toEqual({ pro_a: status })
  })

  it.each([
    ['a day before it', MONTH - DAY, {}, 'refunded'],
    ['more than a day before it', MONTH - DAY - 1, {}, 'active'],
    ['that it names, ten days before it', MONTH - 10 * DAY, { paymentId: 'pay_2' }, 'refunded'],
    ['five minutes after it', MONTH + 5, {}, 'refunded'],
  ])('3: a cycle is paid by a payment %s, or not', (_when, at, named, status) => {
    const events = [
      ...BEGUN,
      pay('payment.authorized', 'pay_2', at),
      sub('subscription.renewed', MONTH, named),
    ]
    expect(statuses([...events, refundOf('pay_2')])).toEqual({ pro_a: status })
  })

  it('3: of two payments as near as each other, the earlier one paid the cycle', () => {
    const events = [
      ...BEGUN,
      pay('payment.authorized', 'pay_2', MONTH - 5),
      sub('subscription.renewed', MONTH),
      pay('payment.authorized', 'pay_3', MONTH + 5),
    ]
    expect(statuses([...events, refundOf('pay_2')])).toEqual({ pro_a: 'refunded' })
    expect(statuses([...events, refundOf('pay_3')])).toEqual({ pro_a: 'active' })
  })

  it('5: a second cancellation can only bring the end forward, and a renewal lifts it', () => {
    const until = (day: number) => ({ cancelAtPeriodEnd: true, expiresAt: minute(day * DAY) })
    const twice = [
      ...BEGUN,
      sub('subscription.canceled', 100, until(20)),
      sub('subscription.canceled', 200, until(30)),
    ]
    expect(statuses(twice, {}, 20 * DAY)).toEqual({ pro_a: 'canceled' })
    expect(statuses([...twice, sub('subscription.renewed', 10 * DAY)], {}, 40 * DAY)).toEqual({
      pro_a: 'active',
    })
  })

  it('8: what is past due shows so until it is renewed', () => {
    const pastDue = [...BEGUN, sub('subscription.past_due', MONTH), sub('subscription.renewed', MONTH + 1)]
    expect(read(pastDue, DOCUMENTED_POLICY, newestIn(pastDue))).toMatchObject([{ pastDue: false }])
  })

  it('product: where no start, renewal or update names one, other events do, best first', () => {
    const nameless = sub('subscription.created', 0, { productId: null })
    const settled = pay('payment.settled', 'pay_1', 20, { productId: 'pro_b' })
    const granted = pay('payment.authorized', 'pay_1', 0)
    const pastDue = sub('subscription.past_due', MONTH, { productId: 'pro_c' })
    expect(statuses([nameless, settled])).toEqual({ pro_b: 'active' })
    expect(statuses([nameless, settled, granted])).toEqual({ pro_a: 'active' })
    expect(statuses([nameless, settled, granted, pastDue])).toEqual({ pro_c: 'active' })
    expect(statuses([...BEGUN, pastDue])).toEqual({ pro_a: 'active' })
  })

  it('product: a downgrade at the renewal has no charge that a refund could reach', () => {
    const events = [...RENEWED, sub('subscription.updated', MONTH + 1, { productId: 'pro_b' })]
    expect(statuses([...events, refundOf('pay_2')])).toEqual({ pro_a: 'moved', pro_b: 'refunded' })
  })

  const last = { cycles: { current: 2, total: 2 }, expiresAt: minute(2 * MONTH) }
  it.each<[Partial<Policy>, Events, at: number, documented: string, switched: string]>([
    [{ failedRenewal: 'revoke' }, [...BEGUN, pay('payment.failed', 'pay_2', 9)], 9, 'active', 'failed'],
    [{ paidCycle: 'informs' }, BEGUN.slice(1), 0, 'active', 'none'],
    [
      { canceled: 'period_end' },
      [...BEGUN, sub('subscription.canceled', 9, { expiresAt: minute(MONTH) })],
      9,
      'canceled',
      'ending',
    ],
    [
      { completed: 'keep' },
      [...BEGUN, sub('subscription.renewed', MONTH, last)],
      2 * MONTH,
      'completed',
      'active',
    ],
    [{ lapseAfter: 45 * DAY * 60_000 }, RENEWED, 2 * MONTH + 45 * DAY - 1, 'active', 'ending'],
    [{ lapseAfter: 45 * DAY * 60_000 }, RENEWED, 2 * MONTH + 45 * DAY, 'active', 'lapsed'],
  ])('the policy switch %o', (policy, events, at, documented, switched) => {
    expect(statuses(events, {}, at)).toEqual({ pro_a: documented })
    expect(statuses(events, policy, at)).toEqual(switched === 'none' ? {} : { pro_a: switched })
  })
})

it('3: the cycles for which no payment is known are counted, since no refund can reach them', () => {
  const renewed = [sub('subscription.created', 0), sub('subscription.renewed', MONTH)]
  const paid = [pay('payment.authorized', 'pay_3', 2 * MONTH), sub('subscription.renewed', 2 * MONTH)]
  expect(foldAll([...renewed, ...paid], DOCUMENTED_POLICY)).toMatchObject([{ cyclesWithoutPayment: 2 }])
})
