import { describe, expect, it } from 'vitest'
import type { SourceEvent } from '../../src/entitlements/kept-event.js'
import { minute } from './events.js'
import { explained, pay, SUBSCRIPTION, sub } from './explained.js'

const begun = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 0)]
const overdue = [...begun, sub('evt_3', 'subscription.past_due', 100)]
const announced = [
  ...begun,
  sub('evt_3', 'subscription.updated', 100, { cancelAtPeriodEnd: true, expiresAt: minute(43200) }),
]
const ending = [
  ...begun,
  sub('evt_3', 'subscription.canceled', 100, { cancelAtPeriodEnd: true, expiresAt: minute(43200) }),
]

const NOTHING_CHANGES = 'for information only, since the policy lets it change nothing.'

describe('what an event of a subscription changes', () => {
  const cases: readonly (readonly [string, readonly SourceEvent[], string])[] = [
    [
      'is told once of a payment that is overdue',
      [...overdue, sub('it', 'subscription.past_due', 200)],
      `Overdue notice of sub_1: ${NOTHING_CHANGES}`,
    ],
    [
      'is nothing while a payment stays overdue',
      [...overdue, sub('it', 'subscription.updated', 200)],
      `Update of sub_1: ${NOTHING_CHANGES}`,
    ],
    [
      'is that no payment is overdue, once renewed',
      [...overdue, pay('evt_4', 'payment.authorized', 'pay_2', 200), sub('it', 'subscription.renewed', 200)],
      'Renewal of sub_1: pay_2 has paid this cycle. No payment is overdue any more.',
    ],
    [
      'is an announcement that it will be canceled at the end of its period',
      [
        ...begun,
        sub('it', 'subscription.updated', 100, { cancelAtPeriodEnd: true, expiresAt: minute(43200) }),
      ],
      'Update of sub_1: it tells how the subscription stands. It is to be canceled when the period ends, at 2026-01-31T00:00:00.000Z.',
    ],
    [
      'is the same announcement where the end of the period is not known',
      [...begun, sub('it', 'subscription.updated', 100, { cancelAtPeriodEnd: true })],
      'Update of sub_1: it tells how the subscription stands. It is to be canceled when the period ends.',
    ],
    [
      'is told once of an announcement',
      [...announced, sub('it', 'subscription.updated', 200, { cancelAtPeriodEnd: true })],
      `Update of sub_1: ${NOTHING_CHANGES}`,
    ],
    [
      'is that an announcement was taken back',
      [...announced, sub('it', 'subscription.updated', 200, { cancelAtPeriodEnd: false })],
      'Update of sub_1: it tells how the subscription stands. It is not to be canceled any more.',
    ],
    [
      'is nothing about an end that stands',
      [...ending, sub('it', 'subscription.past_due', 200)],
      'Overdue notice of sub_1: it tells how the subscription stands. A payment is overdue from here on.',
    ],
    [
      'is that a second report of one payment changed nothing',
      [...begun, pay('it', 'checkout.succeeded', 'pay_1', 100)],
      'Completed checkout of pay_1: pay_1 counted as paid already.',
    ],
    [
      'is nothing about a plan change whose charge had been refunded',
      [
        ...begun,
        pay('evt_3', 'payment.authorized', 'pay_3', 4000),
        sub('evt_4', 'subscription.updated', 4001, { productId: 'pro_b' }),
        pay('evt_5', 'payment.refunded', 'pay_3', 5000),
        sub('it', 'subscription.past_due', 43200),
      ],
      'Overdue notice of sub_1: it tells how the subscription stands. A payment is overdue from here on.',
    ],
    [
      'is the plan, by a payment, where no subscription event tells of it',
      [
        pay('evt_1', 'payment.authorized', 'pay_1', 0),
        pay('it', 'payment.authorized', 'pay_2', 100, { productId: 'pro_b' }),
      ],
      'Authorization of pay_2: pay_1 has paid this cycle since evt_1, and a further payment counts once a renewal says what it paid. Access moves from pro_a to pro_b.',
    ],
  ]

  it.each(cases)('%s', (_, events, sentence) => {
    const source = explained(SUBSCRIPTION, events)
    expect(source.events.find(({ id }) => id === 'it')).toMatchObject({ sentence })
  })
})
