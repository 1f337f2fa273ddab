import { describe, expect, it } from 'vitest'
import type { Block } from '../../src/entitlements/model.js'
import { minute } from './events.js'
import { explainAt, pay, SUBSCRIPTION, sub } from './explained.js'

const begun = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 0)]

describe('the ends that lie ahead', () => {
  const announced = (expiresAt: number | null) =>
    explainAt(200, [
      [
        SUBSCRIPTION,
        [...begun, sub('evt_3', 'subscription.updated', 100, { cancelAtPeriodEnd: true, expiresAt })],
      ],
    ]).ends

  it('are told of a cancellation that is only announced', () => {
    const end = { source: SUBSCRIPTION, reason: 'canceled', eventId: null }
    expect(announced(minute(43200))).toEqual([
      {
        ...end,
        at: minute(43200),
        sentence:
          'The subscription sub_1 is to be canceled when its period ends, at 2026-01-31T00:00:00.000Z; access goes on until it is.',
      },
    ])
    expect(announced(null)).toEqual([
      {
        ...end,
        at: null,
        sentence:
          'The subscription sub_1 is to be canceled when its period ends; access goes on until it is.',
      },
    ])
  })

  it('are none of what runs without one, and none of what is over', () => {
    expect(explainAt(10, [[SUBSCRIPTION, begun]]).ends).toEqual([])
    const refund = pay('evt_3', 'payment.refunded', 'pay_1', 5)
    expect(explainAt(10, [[SUBSCRIPTION, [...begun, refund]]]).ends).toEqual([])
  })
})

it('tells of every block on the product, and of when it was lifted', () => {
  const blocks: Block[] = [
    { productId: 'pro_a', from: minute(5), until: minute(7) },
    { productId: 'pro_b', from: minute(6), until: null },
  ]
  expect(explainAt(10, [[SUBSCRIPTION, begun]], { blocks }).blocks).toEqual([
    {
      ...blocks[0],
      sentence: 'pro_a is blocked from 2026-01-01T00:05:00.000Z to 2026-01-01T00:07:00.000Z.',
    },
  ])
})
