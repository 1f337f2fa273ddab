import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { Note } from '../../src/entitlements/reasons.js'
import { byHand, minute, once, pay, sub } from './events.js'
import {
  ANNOUNCED,
  AT_PERIOD_END,
  acts,
  BEGUN,
  CANCELED,
  type Events,
  explained,
  MANUAL,
  NOTHING_CHANGES,
  OVERDUE,
  PAYMENT,
  PERIOD_END,
  REFUNDED,
  SUBSCRIPTION,
  TO_B,
} from './explained.js'

const CRYPTO = { railProof: { rail: 'crypto', strength: 3 } } as const
const RENEWED = [
  ...BEGUN,
  pay('evt_8', 'payment.authorized', 'pay_2', 43200),
  sub('evt_9', 'subscription.renewed', 43200),
]
const CHARGED = [...BEGUN, pay('evt_3', 'payment.authorized', 'pay_3', 4000)]
const UPGRADED = [...CHARGED, sub('evt_4', 'subscription.updated', 4001, TO_B)]

/** What is said of the event `it`, and the events of its source. */
type Case = readonly [sentence: string, Note, Events, Partial<Policy>?]

const SHOWS_STATE = 'it shows the state of the subscription.'
const INFORMED = { code: 'informed' } as const

const CASES = [
  [
    'Authorization of pay_1: pay_1 counts as paid from here on. Access to pro_a begins.',
    { code: 'paid', paymentId: 'pay_1' },
    [once('it', 'payment.authorized', 0)],
  ],
  [
    'Completed checkout of pay_1: pay_1 already counted as paid.',
    { code: 'paid_already', paymentId: 'pay_1' },
    [once('evt_1', 'payment.authorized', 0), once('it', 'checkout.succeeded', 1)],
  ],
  [
    'Refund of pay_1: pay_1 no longer counts. Access to pro_a ends.',
    { code: 'taken_back', paymentId: 'pay_1' },
    [once('evt_1', 'payment.authorized', 0), once('it', 'payment.refunded', 1)],
  ],
  [
    'Refund of pay_1: access did not depend on pay_1.',
    { code: 'nothing_to_end', paymentId: 'pay_1' },
    [once('evt_1', 'payment.failed', 0), once('it', 'payment.refunded', 1)],
  ],
  [
    `Refund of pay_1: ${NOTHING_CHANGES}`,
    INFORMED,
    [once('evt_1', 'payment.succeeded', 0, CRYPTO), once('it', 'payment.refunded', 1, CRYPTO)],
  ],
  [
    'Completed checkout of pay_1: waits until an event names its customer.',
    { code: 'held', reason: 'customer_unknown' },
    [once('it', 'checkout.succeeded', 0, { customerId: null })],
  ],
  [
    'Authorization of pay_1: waits until an event names its product.',
    { code: 'held', reason: 'product_unknown' },
    [once('it', 'payment.authorized', 0, { productId: null })],
  ],
  [
    'Completed checkout of pay_1: waits until an event shows how it was paid, since a completed checkout alone proves no money.',
    { code: 'held', reason: 'rail_unknown' },
    [once('it', 'checkout.succeeded', 0, { railProof: null })],
  ],
  [
    'Authorization of pay_2: pay_1 has paid this cycle since evt_1, and another payment counts once a renewal says what it paid.',
    { code: 'waits_for_cycle', paymentId: 'pay_2', basis: 'pay_1', since: 'evt_1' },
    [...BEGUN, pay('it', 'payment.authorized', 'pay_2', 100)],
  ],
  [
    'Success of pay_1: it counts once the subscription reports a paid cycle.',
    { code: 'success_only', paymentId: 'pay_1' },
    [pay('it', 'payment.succeeded', 'pay_1', 0)],
  ],
  [
    'Refund of pay_1: pay_2 has paid this cycle since evt_9.',
    { code: 'basis_kept', paymentId: 'pay_1', basis: 'pay_2', since: 'evt_9' },
    [...RENEWED, pay('it', 'payment.refunded', 'pay_1', 43300)],
  ],
  [
    'Failure of pay_2: the subscription has run without a known payment since evt_2.',
    { code: 'basis_kept', paymentId: 'pay_2', basis: null, since: 'evt_2' },
    [sub('evt_2', 'subscription.created', 0), pay('it', 'payment.failed', 'pay_2', 43200)],
  ],
  [
    'Refund of pay_1: pay_1 was already revoked by evt_3.',
    { code: 'taken_back_already', paymentId: 'pay_1', by: 'evt_3' },
    [
      ...REFUNDED,
      pay('evt_4', 'payment.refunded', 'pay_2', 15),
      pay('evt_7', 'payment.completed', 'pay_1', 18),
      pay('evt_5', 'payment.refunded', 'pay_1', 20),
      sub('evt_6', 'subscription.renewed', 25, { paymentId: 'pay_1' }),
      pay('it', 'payment.refunded', 'pay_1', 30),
    ],
    {
      revokeOn: { ...DOCUMENTED_POLICY.revokeOn, card: ['payment.refunded', 'subscription.renewed'] },
    },
  ],
  [
    'Completed checkout of pay_1: pay_1 was revoked for good by evt_3.',
    { code: 'final_take_back', paymentId: 'pay_1', by: 'evt_3' },
    [
      ...REFUNDED,
      pay('evt_4', 'payment.authorized', 'pay_1', 20),
      pay('it', 'checkout.succeeded', 'pay_1', 30),
    ],
  ],
  [
    'Failure of pay_2: the policy ends a subscription on any failed payment. Access to pro_a ends.',
    { code: 'failure_ends_all', paymentId: 'pay_2', basis: 'pay_1' },
    [...BEGUN, pay('it', 'payment.failed', 'pay_2', 43200)],
    { failedRenewal: 'revoke' },
  ],
  [
    'Renewal of sub_1: pay_2 pays this cycle, by a later event.',
    { code: 'cycle_paid_later', paymentId: 'pay_2' },
    [...BEGUN, sub('it', 'subscription.renewed', 43200), pay('evt_8', 'payment.authorized', 'pay_2', 43201)],
  ],
  [
    'Authorization of pay_2: pay_2 pays the cycle of evt_7.',
    { code: 'paid_waiting_cycle', paymentId: 'pay_2', cycle: 'evt_7' },
    [
      ...BEGUN,
      sub('evt_7', 'subscription.renewed', 43200),
      pay('evt_8', 'checkout.initiated', 'pay_2', 43201),
      pay('it', 'payment.authorized', 'pay_2', 43202),
    ],
  ],
  [
    'Renewal of sub_1: pay_2 should have paid this cycle, but failed at evt_8: the cycle waits until it is paid.',
    { code: 'cycle_failed', paymentId: 'pay_2', by: 'evt_8' },
    [
      ...BEGUN,
      pay('evt_7', 'payment.authorized', 'pay_2', 43200),
      pay('evt_8', 'payment.failed', 'pay_2', 43201),
      sub('it', 'subscription.renewed', 43202),
    ],
  ],
  [
    'Renewal of sub_1: pay_2 should have paid this cycle, but was revoked by evt_8.',
    { code: 'cycle_taken_back', paymentId: 'pay_2', by: 'evt_8' },
    [
      ...BEGUN,
      pay('evt_7', 'payment.authorized', 'pay_2', 43200),
      pay('evt_8', 'payment.refunded', 'pay_2', 43201),
      sub('it', 'subscription.renewed', 43202),
    ],
  ],
  [
    'Start of sub_1: no known payment paid the cycle, so no refund can end it. Access to pro_a begins.',
    { code: 'cycle_without_payment' },
    [sub('it', 'subscription.created', 0)],
  ],
  [
    'Start of sub_1: no payment of this cycle is known, and the policy asks for one.',
    { code: 'cycle_ignored' },
    [sub('it', 'subscription.created', 0)],
    { paidCycle: 'informs' },
  ],
  [
    'Expiry of sub_1: the subscription is over. Access to pro_a ends.',
    { code: 'subscription_ended' },
    [...BEGUN, sub('it', 'subscription.expired', 86400)],
  ],
  [
    'Expiry of sub_1: the subscription no longer gave access.',
    { code: 'subscription_ended_already' },
    [...REFUNDED, sub('it', 'subscription.expired', 86400)],
  ],
  [
    'Success of pay_1: pay_1 was first paid before evt_3 ended the subscription, and does not bring it back.',
    { code: 'paid_before_end', paymentId: 'pay_1', endedBy: 'evt_3' },
    [
      pay('evt_1', 'payment.succeeded', 'pay_1', 0, CRYPTO),
      sub('evt_3', 'subscription.expired', 46000),
      sub('evt_4', 'subscription.updated', 46001),
      pay('it', 'payment.succeeded', 'pay_1', 46002, CRYPTO),
    ],
  ],
  [
    'Cancellation of sub_1: it takes effect at once. Access to pro_a ends.',
    { code: 'canceled', at: minute(100) },
    [...BEGUN, sub('it', 'subscription.canceled', 100, { expiresAt: minute(43200) })],
  ],
  [
    `Cancellation of sub_1: it takes effect at ${PERIOD_END}. It now ends at ${PERIOD_END}: the subscription was canceled.`,
    { code: 'canceled', at: minute(43200) },
    [...BEGUN, sub('it', 'subscription.canceled', 100, AT_PERIOD_END)],
  ],
  [
    'Cancellation of sub_1: evt_3 had already set the end to 2026-01-01T01:40:00.000Z.',
    { code: 'canceled_already', at: minute(100), by: 'evt_3' },
    [
      ...BEGUN,
      sub('evt_3', 'subscription.canceled', 100),
      sub('it', 'subscription.canceled', 200, AT_PERIOD_END),
    ],
  ],
  [
    `Renewal of sub_1: pay_2 has paid this cycle. Its end at ${PERIOD_END} is removed. The pending cancellation is dropped.`,
    { code: 'cycle_paid', paymentId: 'pay_2' },
    [
      ...CANCELED,
      pay('evt_8', 'payment.authorized', 'pay_2', 43000),
      sub('it', 'subscription.renewed', 43000),
    ],
  ],
  [
    `Update of sub_1: ${SHOWS_STATE} It now ends at ${PERIOD_END}: its fixed term ends.`,
    INFORMED,
    [
      ...BEGUN,
      sub('it', 'subscription.updated', 100, { cycles: { current: 3, total: 3 }, expiresAt: minute(43200) }),
    ],
  ],
  [
    'Renewal of sub_1: pay_1 has paid this cycle. Its end moves from 2026-01-01T16:41:00.000Z to 2026-01-02T09:21:00.000Z: no renewal came in time.',
    { code: 'cycle_paid', paymentId: 'pay_1' },
    [
      pay('evt_1', 'payment.authorized', 'pay_1', 0),
      sub('evt_2', 'subscription.created', 0, { expiresAt: minute(1000) }),
      sub('it', 'subscription.renewed', 10, { expiresAt: minute(2000) }),
    ],
    { lapseAfter: 60_000 },
  ],
  [
    `Overdue notice of sub_1: ${SHOWS_STATE} A payment is overdue from here on.`,
    INFORMED,
    [...CANCELED, sub('it', 'subscription.past_due', 200)],
  ],
  [
    `Overdue notice of sub_1: ${NOTHING_CHANGES}`,
    INFORMED,
    [...OVERDUE, sub('it', 'subscription.past_due', 200)],
  ],
  [`Update of sub_1: ${NOTHING_CHANGES}`, INFORMED, [...OVERDUE, sub('it', 'subscription.updated', 200)]],
  [
    'Renewal of sub_1: pay_2 has paid this cycle. No payment is overdue any more.',
    { code: 'cycle_paid', paymentId: 'pay_2' },
    [...OVERDUE, pay('evt_4', 'payment.authorized', 'pay_2', 200), sub('it', 'subscription.renewed', 200)],
  ],
  [
    `Update of sub_1: ${SHOWS_STATE} It will be canceled when the period ends, at ${PERIOD_END}.`,
    INFORMED,
    [...BEGUN, sub('it', 'subscription.updated', 100, AT_PERIOD_END)],
  ],
  [
    `Update of sub_1: ${SHOWS_STATE} It will be canceled when the period ends.`,
    INFORMED,
    [...BEGUN, sub('it', 'subscription.updated', 100, { cancelAtPeriodEnd: true })],
  ],
  [
    `Update of sub_1: ${NOTHING_CHANGES}`,
    INFORMED,
    [...ANNOUNCED, sub('it', 'subscription.updated', 200, { cancelAtPeriodEnd: true })],
  ],
  [
    `Update of sub_1: ${SHOWS_STATE} The pending cancellation is dropped.`,
    INFORMED,
    [...ANNOUNCED, sub('it', 'subscription.updated', 200, { cancelAtPeriodEnd: false })],
  ],
  [
    'Failure: for information only, since it names no payment.',
    { code: 'payment_unnamed' },
    [...BEGUN, pay('it', 'payment.failed', null, 100)],
  ],
  [
    'Update of sub_1: the plan is pro_b from here on, charged to pay_3. Access moves from pro_a to pro_b.',
    { code: 'plan_changed', from: 'pro_a', to: 'pro_b', chargedTo: 'pay_3' },
    [...CHARGED, sub('it', 'subscription.updated', 4001, TO_B)],
  ],
  [
    'Update of sub_1: the plan is pro_b from here on, without a charge. Access moves from pro_a to pro_b.',
    { code: 'plan_changed', from: 'pro_a', to: 'pro_b', chargedTo: null },
    [...BEGUN, sub('it', 'subscription.updated', 4001, TO_B)],
  ],
  [
    'Update of sub_1: the charge for pro_b, pay_3, was revoked by evt_4, so the plan stays the same.',
    { code: 'plan_change_unpaid', productId: 'pro_b', chargedTo: 'pay_3', by: 'evt_4' },
    [
      ...CHARGED,
      pay('evt_4', 'payment.refunded', 'pay_3', 4001),
      sub('it', 'subscription.updated', 4002, TO_B),
    ],
  ],
  [
    'Refund of pay_3: it was the charge for pro_b, so the plan is pro_a again. Access moves from pro_b to pro_a.',
    { code: 'plan_change_undone', paymentId: 'pay_3', from: 'pro_b', to: 'pro_a' },
    [...UPGRADED, pay('it', 'payment.refunded', 'pay_3', 5000)],
  ],
  [
    'Authorization of pay_3: it is the charge for pro_b, so the plan is pro_b after all. Access moves from pro_a to pro_b.',
    { code: 'plan_change_restored', paymentId: 'pay_3', from: 'pro_a', to: 'pro_b' },
    [
      ...UPGRADED,
      pay('evt_5', 'payment.failed', 'pay_3', 5000),
      pay('it', 'payment.authorized', 'pay_3', 5001),
    ],
  ],
  [
    `Overdue notice of sub_1: ${SHOWS_STATE} A payment is overdue from here on.`,
    INFORMED,
    [...UPGRADED, pay('evt_5', 'payment.refunded', 'pay_3', 5000), sub('it', 'subscription.past_due', 43200)],
  ],
  [
    'Authorization of pay_2: pay_1 has paid this cycle since evt_1, and another payment counts once a renewal says what it paid. Access moves from pro_a to pro_b.',
    { code: 'waits_for_cycle', paymentId: 'pay_2', basis: 'pay_1', since: 'evt_1' },
    [
      pay('evt_1', 'payment.authorized', 'pay_1', 0),
      pay('it', 'payment.authorized', 'pay_2', 100, { productId: 'pro_b' }),
    ],
  ],
] as const satisfies readonly Case[]

/** Does not compile where a note has no case; acts by hand have a test of their own. */
type Untold = Exclude<Note['code'], (typeof CASES)[number][1]['code'] | 'granted' | 'revoked' | 'not_granted'>
void ({} satisfies Record<Untold, true>)

describe('of an event is said', () => {
  for (const [sentence, note, events, switches] of CASES as readonly Case[]) {
    it(sentence, () => {
      const isOfSubscription = events.some((one) => 'subscriptionId' in one && one.subscriptionId !== null)
      const policy = { ...DOCUMENTED_POLICY, ...switches }
      const source = explained(isOfSubscription ? SUBSCRIPTION : PAYMENT, events, policy)
      expect(source.events.find(({ id }) => id === 'it')).toMatchObject({ note, sentence })
    })
  }

  it('what was granted and revoked by hand, in the order in which it was done, and no end that is past', () => {
    const source = explained(
      MANUAL,
      acts(
        byHand('manual.granted', 30),
        byHand('manual.granted', 25, { until: minute(25) }),
        byHand('manual.revoked', 20),
        byHand('manual.revoked', 10),
        byHand('manual.granted', 0, { until: minute(1000) }),
      ),
    )
    expect(source.events.map(({ note, sentence }) => [note, sentence])).toEqual([
      [
        { code: 'granted', until: minute(1000) },
        'Manual grant: until 2026-01-01T16:40:00.000Z. Access to pro_a begins. It now ends at 2026-01-01T16:40:00.000Z: the grant expires.',
      ],
      [{ code: 'revoked' }, 'End of the manual grant: the manual grant is revoked. Access to pro_a ends.'],
      [{ code: 'not_granted' }, 'End of the manual grant: there was no manual grant at that time.'],
      [{ code: 'granted', until: minute(25) }, 'Manual grant: until 2026-01-01T00:25:00.000Z.'],
      [{ code: 'granted', until: null }, 'Manual grant: for good. Access to pro_a begins.'],
    ])
  })
})
