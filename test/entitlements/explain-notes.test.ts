import { describe, expect, it } from 'vitest'
import type { SourceEvent } from '../../src/entitlements/kept-event.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { Note } from '../../src/entitlements/reasons.js'
import { minute } from './events.js'
import { explained, once, PAYMENT, pay, SUBSCRIPTION, sub } from './explained.js'

interface Case {
  readonly name: string
  readonly key?: SourceKey
  readonly policy?: Policy
  readonly events: readonly SourceEvent[]
  /** What is said of the event `it`. */
  readonly note: Note
  readonly sentence: string
}

const begun = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 0)]
const renewed = [
  ...begun,
  pay('evt_8', 'payment.authorized', 'pay_2', 43200),
  sub('evt_9', 'subscription.renewed', 43200),
]
const upgraded = [
  ...begun,
  pay('evt_3', 'payment.authorized', 'pay_3', 4000),
  sub('evt_4', 'subscription.updated', 4001, { productId: 'pro_b' }),
]
const crypto = { railProof: { rail: 'crypto', strength: 3 } } as const
const AT_43200 = '2026-01-31T00:00:00.000Z'

const CASES: readonly Case[] = [
  {
    name: 'a one-time grant pays',
    key: PAYMENT,
    events: [once('it', 'payment.authorized', 0)],
    note: { code: 'paid', paymentId: 'pay_1' },
    sentence: 'Authorization of pay_1: pay_1 counts as paid from here on. Access to pro_a begins.',
  },
  {
    name: 'a second report of one payment is one grant',
    key: PAYMENT,
    events: [once('evt_1', 'payment.authorized', 0), once('it', 'checkout.succeeded', 1)],
    note: { code: 'paid_already', paymentId: 'pay_1' },
    sentence: 'Completed checkout of pay_1: pay_1 counted as paid already.',
  },
  {
    name: 'a refund of a one-time payment takes it back',
    key: PAYMENT,
    events: [once('evt_1', 'payment.authorized', 0), once('it', 'payment.refunded', 1)],
    note: { code: 'taken_back', paymentId: 'pay_1' },
    sentence: 'Refund of pay_1: pay_1 counts no more. Access to pro_a ends.',
  },
  {
    name: 'a canceled checkout voids a payment though no row says so',
    key: PAYMENT,
    events: [once('evt_1', 'checkout.succeeded', 0), once('it', 'checkout.canceled', 5)],
    note: { code: 'taken_back', paymentId: 'pay_1' },
    sentence: 'Canceled checkout of pay_1: pay_1 counts no more. Access to pro_a ends.',
  },
  {
    name: 'a refund is final',
    key: PAYMENT,
    events: [once('evt_1', 'payment.refunded', 0), once('it', 'payment.authorized', 1)],
    note: { code: 'final_take_back', paymentId: 'pay_1', by: 'evt_1' },
    sentence: 'Authorization of pay_1: pay_1 was taken back for good by evt_1.',
  },
  {
    name: 'a second failure changes nothing more',
    key: PAYMENT,
    events: [once('evt_1', 'payment.failed', 0), once('it', 'payment.failed', 1)],
    note: { code: 'taken_back_already', paymentId: 'pay_1', by: 'evt_1' },
    sentence: 'Failure of pay_1: pay_1 was taken back by evt_1 already.',
  },
  {
    name: 'a payment that never was good had no access to end',
    key: PAYMENT,
    events: [once('it', 'payment.failed', 0)],
    note: { code: 'nothing_to_end', paymentId: 'pay_1' },
    sentence: 'Failure of pay_1: access did not depend on pay_1.',
  },
  {
    name: 'a refund of a one-time payment that had failed ends nothing',
    key: PAYMENT,
    events: [once('evt_1', 'payment.failed', 0), once('it', 'payment.refunded', 1)],
    note: { code: 'nothing_to_end', paymentId: 'pay_1' },
    sentence: 'Refund of pay_1: access did not depend on pay_1.',
  },
  {
    name: 'a refund of a crypto payment has no row',
    key: PAYMENT,
    events: [once('evt_1', 'payment.succeeded', 0, crypto), once('it', 'payment.refunded', 1, crypto)],
    note: { code: 'informed' },
    sentence: 'Refund of pay_1: for information only, since the policy lets it change nothing.',
  },
  {
    name: 'a grant waits for its customer',
    key: PAYMENT,
    events: [once('it', 'checkout.succeeded', 0, { customerId: null })],
    note: { code: 'held', reason: 'customer_unknown' },
    sentence: 'Completed checkout of pay_1: waits until an event tells whose it is.',
  },
  {
    name: 'a grant waits for its product',
    key: PAYMENT,
    events: [once('it', 'payment.authorized', 0, { productId: null })],
    note: { code: 'held', reason: 'product_unknown' },
    sentence: 'Authorization of pay_1: waits until an event tells which product it is for.',
  },
  {
    name: 'a bare checkout waits for a proof of its rail',
    key: PAYMENT,
    events: [once('it', 'checkout.succeeded', 0, { railProof: null })],
    note: { code: 'held', reason: 'rail_unknown' },
    sentence:
      'Completed checkout of pay_1: waits until an event tells how it was paid, since a completed checkout alone proves no money.',
  },
  {
    name: 'rule 1: a grant gives access where nothing did',
    events: [pay('it', 'payment.authorized', 'pay_1', 0)],
    note: { code: 'paid', paymentId: 'pay_1' },
    sentence: 'Authorization of pay_1: pay_1 counts as paid from here on. Access to pro_a begins.',
  },
  {
    name: 'rule 1: a further grant waits for its cycle',
    events: [...begun, pay('it', 'payment.authorized', 'pay_2', 100)],
    note: { code: 'waits_for_cycle', paymentId: 'pay_2', basis: 'pay_1', since: 'evt_1' },
    sentence:
      'Authorization of pay_2: pay_1 has paid this cycle since evt_1, and a further payment counts once a renewal says what it paid.',
  },
  {
    name: 'rule 1: success that is no grant gives nothing by itself',
    events: [pay('it', 'payment.succeeded', 'pay_1', 0)],
    note: { code: 'success_only', paymentId: 'pay_1' },
    sentence: 'Success of pay_1: it counts once the subscription says that a cycle was paid.',
  },
  {
    name: 'rule 2: a refund of the payment that access depends on ends it',
    events: [...renewed, pay('it', 'payment.refunded', 'pay_2', 43400)],
    note: { code: 'taken_back', paymentId: 'pay_2' },
    sentence: 'Refund of pay_2: pay_2 counts no more. Access to pro_a ends.',
  },
  {
    name: "rule 2: a refund of last month's payment changes nothing",
    events: [...renewed, pay('it', 'payment.refunded', 'pay_1', 43300)],
    note: { code: 'basis_kept', paymentId: 'pay_1', basis: 'pay_2', since: 'evt_9' },
    sentence: 'Refund of pay_1: pay_2 has paid this cycle since evt_9.',
  },
  {
    name: 'rule 2: a declined renewal changes nothing while no payment of the cycle is known',
    events: [sub('evt_2', 'subscription.created', 0), pay('it', 'payment.failed', 'pay_2', 43200)],
    note: { code: 'basis_kept', paymentId: 'pay_2', basis: null, since: 'evt_2' },
    sentence: 'Failure of pay_2: the subscription runs without a known payment since evt_2.',
  },
  {
    name: 'rule 2: a failure ends nothing where there is nothing',
    events: [pay('it', 'payment.failed', 'pay_1', 0)],
    note: { code: 'nothing_to_end', paymentId: 'pay_1' },
    sentence: 'Failure of pay_1: access did not depend on pay_1.',
  },
  {
    name: 'rule 2: a second refund of one payment says which came first',
    events: [
      ...begun,
      pay('evt_3', 'payment.refunded', 'pay_1', 10),
      pay('it', 'payment.refunded', 'pay_1', 20),
    ],
    note: { code: 'taken_back_already', paymentId: 'pay_1', by: 'evt_3' },
    sentence: 'Refund of pay_1: pay_1 was taken back by evt_3 already.',
  },
  {
    name: 'rule 2: a refunded payment does not come back',
    events: [
      ...begun,
      pay('evt_3', 'payment.refunded', 'pay_1', 10),
      pay('it', 'checkout.succeeded', 'pay_1', 20),
    ],
    note: { code: 'final_take_back', paymentId: 'pay_1', by: 'evt_3' },
    sentence: 'Completed checkout of pay_1: pay_1 was taken back for good by evt_3.',
  },
  {
    name: 'rule 2: by policy, any failure ends a subscription',
    policy: { ...DOCUMENTED_POLICY, failedRenewal: 'revoke' },
    events: [...begun, pay('it', 'payment.failed', 'pay_2', 43200)],
    note: { code: 'failure_ends_all', paymentId: 'pay_2', basis: 'pay_1' },
    sentence: 'Failure of pay_2: the policy ends a subscription on any failed payment. Access to pro_a ends.',
  },
  {
    name: 'rule 3: a renewal makes its payment the one that counts',
    events: [
      ...begun,
      pay('evt_8', 'payment.authorized', 'pay_2', 43200),
      sub('it', 'subscription.renewed', 43200),
    ],
    note: { code: 'cycle_paid', paymentId: 'pay_2' },
    sentence: 'Renewal of sub_1: pay_2 has paid this cycle.',
  },
  {
    name: 'rule 3: a renewal may come before its payment',
    events: [
      ...begun,
      sub('it', 'subscription.renewed', 43200),
      pay('evt_8', 'payment.authorized', 'pay_2', 43201),
    ],
    note: { code: 'cycle_paid_later', paymentId: 'pay_2' },
    sentence: 'Renewal of sub_1: pay_2 pays this cycle, by a later event.',
  },
  {
    name: 'rule 3: the payment that a renewal waited for counts as it comes',
    events: [
      ...begun,
      sub('evt_9', 'subscription.renewed', 43200),
      pay('it', 'payment.authorized', 'pay_2', 43201),
    ],
    note: { code: 'paid_waiting_cycle', paymentId: 'pay_2', cycle: 'evt_9' },
    sentence: 'Authorization of pay_2: pay_2 pays the cycle of evt_9.',
  },
  {
    name: 'rule 3: a renewal by a refunded payment gives nothing new',
    events: [
      ...begun,
      pay('evt_7', 'payment.authorized', 'pay_2', 43200),
      pay('evt_8', 'payment.refunded', 'pay_2', 43201),
      sub('it', 'subscription.renewed', 43202),
    ],
    note: { code: 'cycle_taken_back', paymentId: 'pay_2', by: 'evt_8' },
    sentence: 'Renewal of sub_1: pay_2 should have paid this cycle, and was taken back by evt_8.',
  },
  {
    name: 'rule 3: a cycle without a known payment counts all the same',
    events: [sub('it', 'subscription.created', 0)],
    note: { code: 'cycle_without_payment' },
    sentence:
      'Start of sub_1: the cycle was paid by no payment that is known, so that no refund can end it. Access to pro_a begins.',
  },
  {
    name: 'rule 3: by policy, a cycle without a known payment gives nothing',
    policy: { ...DOCUMENTED_POLICY, paidCycle: 'informs' },
    events: [sub('it', 'subscription.created', 0)],
    note: { code: 'cycle_ignored' },
    sentence: 'Start of sub_1: no payment of this cycle is known, and the policy asks for one.',
  },
  {
    name: 'rule 4: an expiry ends the subscription',
    events: [...begun, sub('it', 'subscription.expired', 86400)],
    note: { code: 'subscription_ended' },
    sentence: 'Expiry of sub_1: the subscription is over. Access to pro_a ends.',
  },
  {
    name: 'rule 4: an expiry of what is over changes nothing',
    events: [
      ...begun,
      pay('evt_3', 'payment.refunded', 'pay_1', 10),
      sub('it', 'subscription.expired', 86400),
    ],
    note: { code: 'subscription_ended_already' },
    sentence: 'Expiry of sub_1: the subscription was giving no access any more.',
  },
  {
    name: 'rule 4: an old payment does not revive what expired',
    events: [
      pay('evt_1', 'payment.succeeded', 'pay_1', 0, crypto),
      sub('evt_3', 'subscription.expired', 46000),
      pay('it', 'payment.succeeded', 'pay_1', 46001, crypto),
    ],
    note: { code: 'paid_before_end', paymentId: 'pay_1', endedBy: 'evt_3' },
    sentence:
      'Success of pay_1: pay_1 was first paid before evt_3 ended the subscription, and does not bring it back.',
  },
  {
    name: 'rule 5: a cancellation ends access at once',
    events: [...begun, sub('it', 'subscription.canceled', 100, { expiresAt: minute(43200) })],
    note: { code: 'canceled', at: minute(100) },
    sentence: 'Cancellation of sub_1: it takes effect at once. Access to pro_a ends.',
  },
  {
    name: 'rule 5: a cancellation lets access run to the end of the period',
    events: [
      ...begun,
      sub('it', 'subscription.canceled', 100, { expiresAt: minute(43200), cancelAtPeriodEnd: true }),
    ],
    note: { code: 'canceled', at: minute(43200) },
    sentence: `Cancellation of sub_1: it takes effect at ${AT_43200}. It now ends at ${AT_43200}: the subscription was canceled.`,
  },
  {
    name: 'rule 5: a further cancellation never puts the end off',
    events: [
      ...begun,
      sub('evt_3', 'subscription.canceled', 100),
      sub('it', 'subscription.canceled', 200, { expiresAt: minute(43200), cancelAtPeriodEnd: true }),
    ],
    note: { code: 'canceled_already', at: minute(100), by: 'evt_3' },
    sentence: `Cancellation of sub_1: evt_3 had set the end to 2026-01-01T01:40:00.000Z, which stands.`,
  },
  {
    name: 'rule 5: a renewal lifts the end that a cancellation set',
    events: [
      ...begun,
      sub('evt_3', 'subscription.canceled', 100, { expiresAt: minute(43200), cancelAtPeriodEnd: true }),
      pay('evt_8', 'payment.authorized', 'pay_2', 43000),
      sub('it', 'subscription.renewed', 43000),
    ],
    note: { code: 'cycle_paid', paymentId: 'pay_2' },
    sentence: `Renewal of sub_1: pay_2 has paid this cycle. Its end at ${AT_43200} is lifted. It is not to be canceled any more.`,
  },
  {
    name: 'rule 6: the last cycle of a fixed term sets the end',
    events: [
      ...begun,
      sub('it', 'subscription.updated', 100, {
        cycles: { current: 3, total: 3 },
        expiresAt: minute(43200),
      }),
    ],
    note: { code: 'informed' },
    sentence: `Update of sub_1: it tells how the subscription stands. It now ends at ${AT_43200}: its fixed time is over.`,
  },
  {
    name: 'rule 7: a lapse moves with every period that is shown',
    policy: { ...DOCUMENTED_POLICY, lapseAfter: 60_000 },
    events: [
      pay('evt_1', 'payment.authorized', 'pay_1', 0),
      sub('evt_2', 'subscription.created', 0, { expiresAt: minute(1000) }),
      sub('it', 'subscription.renewed', 10, { expiresAt: minute(2000) }),
    ],
    note: { code: 'cycle_paid', paymentId: 'pay_1' },
    sentence:
      'Renewal of sub_1: pay_1 has paid this cycle. Its end moves from 2026-01-01T16:41:00.000Z to 2026-01-02T09:21:00.000Z: no renewal came in time.',
  },
  {
    name: 'rule 8: an overdue notice is shown and changes no access',
    events: [...begun, sub('it', 'subscription.past_due', 43200)],
    note: { code: 'informed' },
    sentence:
      'Overdue notice of sub_1: it tells how the subscription stands. A payment is overdue from here on.',
  },
  {
    name: 'a payment event that names no payment takes no part',
    events: [...begun, pay('it', 'payment.failed', null, 100)],
    note: { code: 'payment_unnamed' },
    sentence: 'Failure: for information only, since it names no payment.',
  },
  {
    name: 'a plan change names its charge, and moves access',
    events: [
      ...begun,
      pay('evt_3', 'payment.authorized', 'pay_3', 4000),
      sub('it', 'subscription.updated', 4001, { productId: 'pro_b' }),
    ],
    note: { code: 'plan_changed', from: 'pro_a', to: 'pro_b', chargedTo: 'pay_3' },
    sentence:
      'Update of sub_1: the plan is pro_b from here on, charged to pay_3. Access moves from pro_a to pro_b.',
  },
  {
    name: 'a plan change without a charge counts for good',
    events: [...begun, sub('it', 'subscription.updated', 4001, { productId: 'pro_b' })],
    note: { code: 'plan_changed', from: 'pro_a', to: 'pro_b', chargedTo: null },
    sentence:
      'Update of sub_1: the plan is pro_b from here on, without a charge. Access moves from pro_a to pro_b.',
  },
  {
    name: 'a plan change whose charge was refunded does not count',
    events: [
      ...begun,
      pay('evt_3', 'payment.authorized', 'pay_3', 4000),
      pay('evt_4', 'payment.refunded', 'pay_3', 4001),
      sub('it', 'subscription.updated', 4002, { productId: 'pro_b' }),
    ],
    note: { code: 'plan_change_unpaid', productId: 'pro_b', chargedTo: 'pay_3', by: 'evt_4' },
    sentence: 'Update of sub_1: the charge for pro_b, pay_3, was taken back by evt_4, so the plan stays.',
  },
  {
    name: "a refund of an upgrade's charge gives the old plan back",
    events: [...upgraded, pay('it', 'payment.refunded', 'pay_3', 5000)],
    note: { code: 'plan_change_undone', paymentId: 'pay_3', from: 'pro_b', to: 'pro_a' },
    sentence:
      'Refund of pay_3: it was the charge for pro_b, so the plan is pro_a again. Access moves from pro_b to pro_a.',
  },
  {
    name: "an upgrade's charge that failed and then came good counts after all",
    events: [
      ...upgraded,
      pay('evt_5', 'payment.failed', 'pay_3', 5000),
      pay('it', 'payment.authorized', 'pay_3', 5001),
    ],
    note: { code: 'plan_change_restored', paymentId: 'pay_3', from: 'pro_a', to: 'pro_b' },
    sentence:
      'Authorization of pay_3: it is the charge for pro_b, so the plan is pro_b after all. Access moves from pro_a to pro_b.',
  },
]

/** Acts by hand have notes of their own, told in their own tests. */
const BY_HAND: readonly Note['code'][] = ['granted', 'revoked', 'not_granted']

/** A code that is missing here does not compile. */
const CODES: Readonly<Record<Note['code'], true>> = {
  held: true,
  informed: true,
  payment_unnamed: true,
  paid: true,
  paid_already: true,
  waits_for_cycle: true,
  success_only: true,
  paid_before_end: true,
  final_take_back: true,
  taken_back: true,
  taken_back_already: true,
  basis_kept: true,
  nothing_to_end: true,
  failure_ends_all: true,
  cycle_paid: true,
  cycle_paid_later: true,
  paid_waiting_cycle: true,
  cycle_taken_back: true,
  cycle_without_payment: true,
  cycle_ignored: true,
  subscription_ended: true,
  subscription_ended_already: true,
  canceled: true,
  canceled_already: true,
  plan_changed: true,
  plan_change_unpaid: true,
  plan_change_undone: true,
  plan_change_restored: true,
  granted: true,
  revoked: true,
  not_granted: true,
}

describe('what is said of an event', () => {
  it.each(CASES)('$name', ({ key = SUBSCRIPTION, policy, events, note, sentence }) => {
    const source = explained(key, events, policy)
    expect(source.events.find(({ id }) => id === 'it')).toMatchObject({ note, sentence })
  })

  it('has a case for every note', () => {
    const told = new Set([...CASES.map(({ note }) => note.code), ...BY_HAND])
    expect([...told].sort()).toEqual(Object.keys(CODES).sort())
  })
})
