import { expect, it } from 'vitest'
import { isGrantAct } from '../../src/entitlements/manual-source.js'
import {
  BEGUN,
  type Case,
  DAY,
  inBothWays,
  inOneDay,
  LONG_AGO,
  nameless,
  RENEWED,
  RENEWED_UNPAID,
  unproven,
} from './advancing.js'
import { once, PAYMENT, pay, sub } from './explained.js'
import { byHand } from './manual-events.js'

const FOLDED_AGAIN: readonly Case[] = [
  {
    name: 'that grants what had succeeded after a failure',
    events: [
      ...BEGUN,
      pay('evt_3', 'payment.failed', 'pay_2', 5 * DAY),
      pay('evt_4', 'payment.succeeded', 'pay_2', 6 * DAY),
      pay('it', 'payment.authorized', 'pay_2', 7 * DAY),
    ],
  },
  {
    name: 'that first shows a rail, after a payment on an unknown one and a notice',
    events: [
      pay('evt_1', 'payment.succeeded', 'pay_1', 0, unproven),
      sub('evt_2', 'subscription.past_due', 1, nameless),
      pay('it', 'payment.authorized', 'pay_2', 2 * DAY),
    ],
  },
  {
    name: 'that may be the charge of a plan change for which none was found',
    events: [
      ...BEGUN,
      sub('evt_3', 'subscription.updated', 5 * DAY, { productId: 'pro_b' }),
      pay('it', 'payment.authorized', 'pay_2', 5 * DAY + 1),
    ],
  },
  { name: 'on a day with 65 payments', events: [...inOneDay(65), sub('it', 'subscription.past_due', 100)] },
  {
    name: 'at an instant at which another event was made',
    events: [...BEGUN, pay('it', 'payment.refunded', 'pay_1', 1)],
  },
  { name: 'that is older than another', events: [...RENEWED, pay('it', 'payment.refunded', 'pay_1', 5)] },
  {
    name: 'of a one-time payment at an instant at which another was made',
    key: PAYMENT,
    events: [once('evt_1', 'payment.refunded', 5), once('it', 'payment.authorized', 5)],
  },
  {
    name: 'that proves the rail of a payment',
    events: [
      pay('evt_1', 'payment.succeeded', 'pay_1', 0, unproven),
      pay('it', 'payment.settled', 'pay_1', 5),
    ],
  },
  {
    name: 'that proves the rail of a one-time payment',
    key: PAYMENT,
    events: [once('evt_1', 'checkout.succeeded', 0, unproven), once('it', 'payment.settled', 5)],
  },
  {
    name: 'that names another product of a one-time payment',
    key: PAYMENT,
    events: [
      once('evt_1', 'payment.authorized', 0),
      once('it', 'payment.settled', 5, { productId: 'pro_b' }),
    ],
  },
  {
    name: 'that first shows the rail under which subscription events are read',
    events: [sub('evt_1', 'subscription.expired', 0), pay('it', 'payment.authorized', 'pay_1', 2 * DAY)],
  },
  {
    name: 'that grants what only had succeeded',
    events: [
      pay('evt_1', 'payment.succeeded', 'pay_1', 0),
      pay('it', 'payment.authorized', 'pay_1', 2 * DAY),
    ],
  },
  {
    name: 'that pays nearer to a renewal than the payment found for it',
    events: [...RENEWED, pay('it', 'payment.authorized', 'pay_3', 30 * DAY + 9)],
  },
  {
    name: 'that pays a day after a renewal for which no payment was found',
    events: [...RENEWED_UNPAID, pay('it', 'payment.authorized', 'pay_3', 31 * DAY)],
  },
  {
    name: 'that pays by the payment which a renewal had named',
    events: [
      ...BEGUN,
      pay('evt_3', 'payment.authorized', 'pay_2', 30 * DAY - 10),
      sub('evt_4', 'subscription.renewed', 30 * DAY, { paymentId: 'pay_3' }),
      pay('it', 'payment.authorized', 'pay_3', 40 * DAY),
    ],
  },
  {
    name: 'of a payment that was forgotten',
    events: [...LONG_AGO, pay('it', 'payment.refunded', 'pay_old_0', 600 * DAY)],
  },
  {
    name: 'that names a payment that was forgotten',
    events: [...LONG_AGO, sub('it', 'subscription.renewed', 600 * DAY, { paymentId: 'pay_old_0' })],
  },
  {
    name: 'that first names a product',
    events: [pay('evt_1', 'payment.authorized', 'pay_1', 0, nameless), sub('it', 'subscription.created', 1)],
  },
  {
    name: 'that names the product better than a payment did',
    events: [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('it', 'subscription.created', 1)],
  },
  {
    name: 'that renews by the payment that a plan change was charged to',
    events: [
      ...BEGUN,
      pay('evt_3', 'payment.authorized', 'pay_2', 4 * DAY),
      sub('evt_4', 'subscription.updated', 4 * DAY + 1, { productId: 'pro_b' }),
      pay('evt_5', 'payment.refunded', 'pay_2', 4 * DAY + 2),
      sub('it', 'subscription.renewed', 4 * DAY + 3),
    ],
  },
  {
    name: 'that tells the customer for whom another waited',
    events: [
      pay('evt_1', 'payment.authorized', 'pay_1', 0, { customerId: null }),
      pay('it', 'payment.settled', 'pay_1', 5),
    ],
  },
  {
    name: 'that was done by hand',
    key: { kind: 'manual', id: 'cus_1/pro_a' },
    events: [byHand('manual.granted', 0), byHand('manual.revoked', 5)].filter(isGrantAct),
  },
]

it.each(FOLDED_AGAIN)('the newest event makes all be folded again if it is one $name', (example) => {
  expect(inBothWays(example)).toEqual([null, null])
})
