import { expect, it } from 'vitest'
import { foldSource } from '../../src/entitlements/fold-source.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import {
  BEGUN,
  type Case,
  DAY,
  DECLINED_FOR_YEARS,
  inBothWays,
  inOneDay,
  LONG_AGO,
  nameless,
  RENEWED,
  RENEWED_UNPAID,
  unproven,
} from './advancing.js'
import { once, PAYMENT, pay, SUBSCRIPTION, sub } from './explained.js'

const TAKEN_IN: readonly Case[] = [
  {
    name: 'a second report of a payment that was itself taken in',
    events: [
      ...BEGUN,
      pay('evt_3', 'payment.authorized', 'pay_2', 5 * DAY),
      pay('it', 'checkout.succeeded', 'pay_2', 5 * DAY + 1),
    ],
  },
  {
    name: 'a payment soon after a notice',
    events: [
      ...BEGUN,
      sub('evt_3', 'subscription.past_due', 5 * DAY),
      pay('it', 'payment.authorized', 'pay_2', 5 * DAY + 1),
    ],
  },
  {
    name: 'a payment after a plan change just when a cycle was paid, which had no charge',
    events: [
      ...BEGUN,
      pay('evt_3', 'payment.authorized', 'pay_2', 30 * DAY),
      sub('evt_4', 'subscription.renewed', 30 * DAY + 1),
      sub('evt_5', 'subscription.updated', 30 * DAY + 2, { productId: 'pro_b' }),
      pay('evt_6', 'payment.refunded', 'pay_2', 30 * DAY + 3),
      pay('it', 'payment.authorized', 'pay_3', 40 * DAY, nameless),
    ],
  },
  {
    name: 'a failure of a payment that a plan change had named',
    events: [
      ...BEGUN,
      sub('evt_3', 'subscription.updated', 5 * DAY, { paymentId: 'pay_9' }),
      pay('it', 'payment.failed', 'pay_9', 8 * DAY),
    ],
  },
  {
    name: 'a notice that names no product',
    events: [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('it', 'subscription.past_due', 5, nameless)],
  },
  {
    name: 'another event of a payment whose rail nothing proves',
    events: [
      pay('evt_1', 'payment.succeeded', 'pay_1', 0, unproven),
      pay('it', 'payment.completed', 'pay_1', 5, unproven),
    ],
  },
  {
    name: 'a payment whose rail nothing proves, while that of the subscription is not known',
    events: [
      sub('evt_1', 'subscription.past_due', 0),
      pay('it', 'payment.succeeded', 'pay_1', 2 * DAY, unproven),
    ],
  },
  {
    name: 'an event of a payment that waits for a proof of its rail',
    key: PAYMENT,
    events: [once('evt_1', 'checkout.succeeded', 0, unproven), once('it', 'payment.completed', 5, unproven)],
  },
  {
    name: 'an event that leaves the customer unknown for whom another waits',
    events: [
      pay('evt_1', 'payment.authorized', 'pay_1', 0, { customerId: null }),
      pay('it', 'payment.settled', 'pay_1', 5, { customerId: null }),
    ],
  },
  {
    name: 'a refund of one of many payments of the same day',
    events: [...inOneDay(20), pay('it', 'payment.refunded', 'pay_day_0', 100)],
  },
  {
    name: 'a notice on a day with 64 payments',
    events: [...inOneDay(64), sub('it', 'subscription.past_due', 100)],
  },
  {
    name: 'a refund of an old payment that access still depends on',
    events: [...DECLINED_FOR_YEARS, pay('it', 'payment.refunded', 'pay_1', 601 * DAY)],
  },
  {
    name: 'a refund of an old payment that was heard of again',
    events: [
      ...LONG_AGO,
      pay('evt_again', 'payment.settled', 'pay_old_0', 600 * DAY),
      pay('it', 'payment.refunded', 'pay_old_0', 601 * DAY),
    ],
  },
  {
    name: 'a renewal by a payment just made',
    events: [
      ...RENEWED,
      pay('evt_5', 'payment.authorized', 'pay_3', 60 * DAY),
      sub('it', 'subscription.renewed', 60 * DAY + 1),
    ],
  },
  { name: 'a further payment', events: [...RENEWED, pay('it', 'payment.authorized', 'pay_3', 60 * DAY)] },
  {
    name: "a refund of last month's payment",
    events: [...RENEWED, pay('it', 'payment.refunded', 'pay_1', 31 * DAY)],
  },
  { name: 'a second report of a payment', events: [...BEGUN, pay('it', 'checkout.succeeded', 'pay_1', 2)] },
  { name: 'a failed renewal', events: [...BEGUN, pay('it', 'payment.failed', 'pay_2', 30 * DAY)] },
  {
    name: 'a payment event that names no payment',
    events: [...BEGUN, pay('it', 'payment.failed', null, 30 * DAY)],
  },
  { name: 'a notice', events: [...BEGUN, sub('it', 'subscription.past_due', 30 * DAY)] },
  {
    name: 'a plan change',
    events: [...BEGUN, sub('it', 'subscription.updated', 5 * DAY, { productId: 'pro_b' })],
  },
  {
    name: 'a payment as far from a renewal as the one that was found for it',
    events: [...RENEWED, pay('it', 'payment.authorized', 'pay_3', 30 * DAY + 10)],
  },
  {
    name: 'a failed payment near a renewal',
    events: [...RENEWED_UNPAID, pay('it', 'payment.failed', 'pay_3', 30 * DAY + 1)],
  },
  {
    name: 'a payment more than a day after a renewal for which none was found',
    events: [...RENEWED_UNPAID, pay('it', 'payment.authorized', 'pay_3', 31 * DAY + 1)],
  },
  {
    name: 'a payment near a renewal that named the payment which paid it',
    events: [
      ...BEGUN,
      sub('evt_4', 'subscription.renewed', 30 * DAY, { paymentId: 'pay_1' }),
      pay('it', 'payment.authorized', 'pay_3', 30 * DAY + 1),
    ],
  },
  {
    name: 'a known rail while no subscription event was read',
    events: [
      pay('evt_1', 'payment.succeeded', 'pay_1', 0, unproven),
      pay('it', 'payment.authorized', 'pay_2', 2 * DAY),
    ],
  },
  {
    name: 'a payment on another rail than that of the subscription',
    events: [
      ...BEGUN,
      pay('it', 'payment.succeeded', 'pay_2', 5 * DAY, { railProof: { rail: 'crypto', strength: 3 } }),
    ],
  },
  {
    name: 'a stronger proof of the same rail',
    events: [
      pay('evt_1', 'payment.authorized', 'pay_1', 0, { railProof: { rail: 'card', strength: 2 } }),
      pay('it', 'payment.settled', 'pay_1', 5),
    ],
  },
  {
    name: 'a payment that names another product than the subscription does',
    events: [...BEGUN, pay('it', 'payment.authorized', 'pay_2', 5 * DAY, { productId: 'pro_b' })],
  },
  {
    name: 'a new payment of a subscription with many',
    events: [...LONG_AGO, pay('it', 'payment.authorized', 'pay_new', 600 * DAY)],
  },
  {
    name: 'a refund of a payment that is still remembered',
    events: [...LONG_AGO, pay('it', 'payment.refunded', 'pay_old_4', 600 * DAY)],
  },
  {
    name: 'a customer where nothing waits for one',
    events: [
      sub('evt_1', 'subscription.updated', 0, { customerId: null }),
      sub('it', 'subscription.updated', 5),
    ],
  },
  {
    name: 'a refund of a one-time payment',
    key: PAYMENT,
    events: [once('evt_1', 'payment.authorized', 0), once('it', 'payment.refunded', 5)],
  },
  {
    name: 'an event of a one-time payment that names no product',
    key: PAYMENT,
    events: [once('evt_1', 'payment.authorized', 0), once('it', 'payment.settled', 5, nameless)],
  },
]

it.each(TAKEN_IN)('the newest event is taken in without a look at the others: $name', (example) => {
  const whole = foldSource(example.key ?? SUBSCRIPTION, example.events, DOCUMENTED_POLICY)
  for (const taken of inBothWays(example)) expect(taken?.state).toEqual(whole.state)
})
