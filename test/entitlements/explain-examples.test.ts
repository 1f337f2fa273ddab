import { expect, it } from 'vitest'
import type { SourceEvent } from '../../src/entitlements/kept-event.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import type { Note } from '../../src/entitlements/reasons.js'
import { minute } from './events.js'
import { explained, once, PAYMENT, pay, SUBSCRIPTION, sub } from './explained.js'

const begun = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 0)]
const BEGUN: readonly Note['code'][] = ['paid', 'cycle_paid']
const crypto = { railProof: { rail: 'crypto', strength: 3 } } as const
const unproven = { railProof: null } as const
const term = (current: number) => ({ cycles: { current, total: 3 }, expiresAt: minute(current * 43200) })

/** Each worked example, and what is said of its events in the order in which they count. */
const EXAMPLES: readonly (readonly [string, SourceKey, readonly SourceEvent[], readonly Note['code'][]])[] = [
  [
    '1: a declined renewal, and the expiry after it',
    SUBSCRIPTION,
    [
      ...begun,
      sub('evt_3', 'subscription.past_due', 43200),
      pay('evt_4', 'payment.failed', 'pay_2', 43200),
      sub('evt_5', 'subscription.expired', 86400),
    ],
    [...BEGUN, 'informed', 'basis_kept', 'subscription_ended'],
  ],
  [
    '2: refunds of the last cycle and of the running one',
    SUBSCRIPTION,
    [
      ...begun,
      pay('evt_3', 'payment.authorized', 'pay_2', 43200),
      sub('evt_4', 'subscription.renewed', 43200),
      pay('evt_5', 'payment.refunded', 'pay_1', 43300),
      pay('evt_6', 'payment.refunded', 'pay_2', 43400),
    ],
    [...BEGUN, 'waits_for_cycle', 'cycle_paid', 'basis_kept', 'taken_back'],
  ],
  [
    '3: an upgrade whose charge is refunded',
    SUBSCRIPTION,
    [
      ...begun,
      pay('evt_3', 'payment.authorized', 'pay_3', 4000),
      sub('evt_4', 'subscription.updated', 4001, { productId: 'pro_b' }),
      pay('evt_5', 'payment.refunded', 'pay_3', 5000),
    ],
    [...BEGUN, 'waits_for_cycle', 'plan_changed', 'plan_change_undone'],
  ],
  [
    '4: a one-time payment that is refunded',
    PAYMENT,
    [once('evt_1', 'payment.authorized', 0), once('evt_2', 'payment.refunded', 20)],
    ['paid', 'taken_back'],
  ],
  [
    '5: a crypto payment',
    PAYMENT,
    [
      once('evt_1', 'checkout.succeeded', 0, crypto),
      once('evt_2', 'payment.succeeded', 1, unproven),
      once('evt_3', 'payment.refunded', 2, unproven),
    ],
    ['informed', 'paid', 'informed'],
  ],
  ['6: a grant of nobody', PAYMENT, [once('evt_1', 'checkout.succeeded', 0, { customerId: null })], ['held']],
  [
    '6: the same once a later event names the customer',
    PAYMENT,
    [once('evt_1', 'checkout.succeeded', 0, { customerId: null }), once('evt_2', 'payment.succeeded', 5)],
    ['paid', 'informed'],
  ],
  [
    '7: a cancellation',
    SUBSCRIPTION,
    [...begun, sub('evt_3', 'subscription.canceled', 100, { expiresAt: minute(43200) })],
    [...BEGUN, 'canceled'],
  ],
  [
    '8: an old failure that arrives late',
    PAYMENT,
    [once('evt_1', 'payment.authorized', 9), once('evt_2', 'payment.failed', 5)],
    ['nothing_to_end', 'paid'],
  ],
  [
    '9: a canceled checkout',
    PAYMENT,
    [once('evt_1', 'checkout.succeeded', 0), once('evt_2', 'checkout.canceled', 5)],
    ['paid', 'taken_back'],
  ],
  [
    '10: a fixed term',
    SUBSCRIPTION,
    [
      sub('evt_1', 'subscription.created', 0, term(1)),
      sub('evt_2', 'subscription.renewed', 43200, term(2)),
      sub('evt_3', 'subscription.renewed', 86400, term(3)),
    ],
    ['cycle_without_payment', 'cycle_without_payment', 'cycle_without_payment'],
  ],
  [
    '11: a rail that is learned later',
    PAYMENT,
    [once('evt_1', 'payment.succeeded', 0, unproven), once('evt_2', 'payment.settled', 4320)],
    ['paid', 'informed'],
  ],
  [
    '12: an off-session renewal of which only the success is reported',
    SUBSCRIPTION,
    [
      ...begun,
      pay('evt_3', 'payment.succeeded', 'pay_2', 43200),
      sub('evt_4', 'subscription.renewed', 43200),
      pay('evt_5', 'payment.refunded', 'pay_2', 43300),
    ],
    [...BEGUN, 'waits_for_cycle', 'cycle_paid', 'taken_back'],
  ],
  [
    '13: a subscription without a payment',
    SUBSCRIPTION,
    [sub('evt_1', 'subscription.created', 0), sub('evt_2', 'subscription.expired', 10)],
    ['cycle_without_payment', 'subscription_ended'],
  ],
  [
    '14: an expired subscription that a new payment revives',
    SUBSCRIPTION,
    [
      pay('evt_1', 'payment.succeeded', 'pay_1', 0, crypto),
      sub('evt_2', 'subscription.created', 1),
      sub('evt_3', 'subscription.expired', 46000),
      pay('evt_4', 'payment.succeeded', 'pay_1', 46001, crypto),
      pay('evt_5', 'payment.succeeded', 'pay_9', 46002, crypto),
      sub('evt_6', 'subscription.renewed', 46003),
    ],
    ['paid', 'cycle_paid', 'subscription_ended', 'paid_before_end', 'paid', 'cycle_paid'],
  ],
]

it.each(EXAMPLES)('explains worked example %s', (_name, key, events, codes) => {
  expect(explained(key, events).events.map(({ note }) => note.code)).toEqual(codes)
})
