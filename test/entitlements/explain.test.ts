import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StoredAccount } from '../../src/entitlements/explain.js'
import { foldSource } from '../../src/entitlements/fold-source.js'
import type { Block, SourceKey } from '../../src/entitlements/model.js'
import { readSubscription } from '../../src/entitlements/reading.js'
import type { Note } from '../../src/entitlements/reasons.js'
import { byHand, minute, once, pay, START, sub } from './events.js'
import {
  ANNOUNCED,
  acts,
  BEGUN,
  CANCELED,
  type Events,
  explainAt,
  explained,
  MANUAL,
  NOTHING_CHANGES,
  OVERDUE,
  PAYMENT,
  PERIOD_END,
  REFUNDED,
  type Sources,
  SUBSCRIPTION,
  TO_B,
} from './explained.js'
import { type History, paymentHistory, subscriptionHistory, unlawfulHistory } from './histories.js'
import { policies } from './policies.js'

const PAYMENT_2: SourceKey = { kind: 'payment', id: 'pay_2' }

const HISTORIES: readonly (readonly [string, fc.Arbitrary<History>])[] = [
  ['one-time payments', paymentHistory],
  ['lawful subscriptions', subscriptionHistory],
  ['any type at any time', unlawfulHistory],
]

describe('the explanation of a source', () => {
  it.each(HISTORIES)(
    'has every event once, as a sentence, and the intervals of the fold: %s',
    (_, history) => {
      fc.assert(
        fc.property(history, policies, ({ key, events }, policy) => {
          const source = explained(key, events, policy)
          expect(source.events.map(({ id }) => id).sort()).toEqual(events.map(({ id }) => id).sort())
          for (const { sentence } of source.events) {
            expect(sentence).toMatch(/^[A-Z].*: .+\.$/)
            expect(sentence).not.toMatch(/undefined|null| {2}| \.|by\./)
          }
          expect(source.intervals).toEqual(foldSource(key, events, policy).intervals)
          expect(foldSource(key, events, policy, () => {})).toEqual(foldSource(key, events, policy))
        }),
        { numRuns: 200 },
      )
    },
  )

  it('lists the events of a subscription in the order in which they are walked', () => {
    fc.assert(
      fc.property(subscriptionHistory, policies, ({ key, events }, policy) => {
        const { walk } = readSubscription(events, policy)
        expect(explained(key, events, policy).events.map(({ id }) => id)).toEqual(
          walk.map(({ event }) => event.id),
        )
      }),
      { numRuns: 100 },
    )
  })

  it('tells of every beginning of access that the intervals show', () => {
    fc.assert(
      fc.property(subscriptionHistory, policies, ({ key, events }, policy) => {
        const source = explained(key, events, policy)
        fc.pre(source.events.every(({ note }) => note.code !== 'held'))
        for (const { productId, from } of source.intervals) {
          const changes = source.events.flatMap((event) => (event.createdAt === from ? event.changes : []))
          const begins = changes.some((change) => {
            if (change.code === 'access_given') return change.productId === productId
            return change.code === 'access_moved' && change.to === productId
          })
          expect(begins).toBe(true)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('begins or ends no access by an event of which it says that it did not count', () => {
    const withoutEffect: readonly Note['code'][] = [
      'basis_kept',
      'waits_for_cycle',
      'success_only',
      'paid_already',
      'paid_before_end',
      'final_take_back',
      'taken_back_already',
      'nothing_to_end',
      'subscription_ended_already',
      'payment_unnamed',
    ]
    fc.assert(
      fc.property(fc.oneof(subscriptionHistory, unlawfulHistory), policies, ({ key, events }, policy) => {
        for (const { note, changes } of explained(key, events, policy).events) {
          if (!withoutEffect.includes(note.code)) continue
          for (const { code } of changes) expect(code).not.toMatch(/^access_(given|ended)$/)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('shows the row of the policy that each event met', () => {
    const source = explained(SUBSCRIPTION, [
      ...BEGUN,
      pay('evt_3', 'payment.succeeded', 'pay_2', 10, { railProof: null }),
      pay('evt_4', 'checkout.canceled', 'pay_3', 20),
      sub('evt_5', 'subscription.expired', 30),
    ])
    expect(source.events.map(({ row }) => row)).toEqual([
      { rail: 'card', on: 'grant' },
      null,
      { rail: 'unknown', on: 'grant' },
      null,
      { rail: 'card', on: 'takeBack' },
    ])
  })
})

const OTHER = (id: string, type: 'payment.authorized' | 'payment.refunded' | 'payment.failed', at: number) =>
  pay(id, type, 'pay_2', at, { subscriptionId: null })
const UNTIL_1000 = acts(byHand('manual.granted', 0, { until: minute(1000) }))
const GIVEN = 'cus_1 has had access to pro_a since 2026-01-01T00:00:00.000Z, through'
const NEVER = 'cus_1 has never had access to pro_a'

describe('the summary says', () => {
  it.each<[summary: string, at: number, Sources, Partial<StoredAccount>?]>([
    [`${GIVEN} subscription sub_1. No end is known.`, 10, [[SUBSCRIPTION, BEGUN]]],
    [
      `${GIVEN} a manual grant. It ends at 2026-01-01T16:40:00.000Z: the grant expires.`,
      10,
      [[MANUAL, UNTIL_1000]],
    ],
    [
      `${GIVEN} payment pay_1 and subscription sub_1. No end is known.`,
      10,
      [
        [SUBSCRIPTION, BEGUN],
        [PAYMENT, [once('evt_3', 'payment.authorized', 5)]],
        [PAYMENT_2, [OTHER('evt_4', 'payment.authorized', 1), OTHER('evt_5', 'payment.refunded', 2)]],
      ],
    ],
    [
      `${GIVEN} a manual grant and subscription sub_1. It ends at ${PERIOD_END}: the subscription was canceled.`,
      200,
      [
        [SUBSCRIPTION, CANCELED],
        [MANUAL, UNTIL_1000],
      ],
    ],
    [
      `${GIVEN} subscription sub_1. A payment is overdue, and access continues until the subscription ends.`,
      200,
      [[SUBSCRIPTION, OVERDUE]],
    ],
    [
      'cus_1 has had no access to pro_a since 2026-01-01T00:20:00.000Z: the payment was refunded (evt_4 of payment pay_1).',
      30,
      [
        [PAYMENT, [once('evt_3', 'payment.authorized', 0), once('evt_4', 'payment.refunded', 20)]],
        [SUBSCRIPTION, [...BEGUN, sub('evt_5', 'subscription.expired', 10)]],
      ],
    ],
    [
      'cus_1 had not yet been given access to pro_a at 2025-12-31T23:59:00.000Z.',
      -1,
      [[SUBSCRIPTION, BEGUN]],
    ],
    [
      `${NEVER}. Failure of pay_1: access did not depend on pay_1.`,
      30,
      [
        [PAYMENT, [once('evt_1', 'payment.failed', 20), once('evt_4', 'payment.settled', 25)]],
        [PAYMENT_2, [OTHER('evt_2', 'payment.failed', 10)]],
      ],
    ],
    [
      `${NEVER}. Completion of pay_1: ${NOTHING_CHANGES}`,
      30,
      [[PAYMENT, [once('evt_1', 'payment.settled', 0), once('evt_2', 'payment.completed', 2)]]],
    ],
    [
      `${NEVER}. Authorization of pay_1: pay_1 counts as paid from here on. Access to pro_b begins.`,
      30,
      [[PAYMENT, [once('evt_1', 'payment.authorized', 0), once('evt_2', 'payment.settled', 1, TO_B)]]],
    ],
    [
      `${NEVER}: none of their events is about it.`,
      10,
      [[PAYMENT, [once('evt_1', 'payment.authorized', 0, TO_B)]]],
    ],
    [
      `${NEVER}. One event is waiting.`,
      10,
      [[PAYMENT, [once('evt_1', 'payment.authorized', 0, { productId: null })]]],
    ],
    [
      'cus_1 is blocked from pro_a.',
      10,
      [[SUBSCRIPTION, BEGUN]],
      { blocks: [{ productId: null, from: minute(5), until: null }] },
    ],
    [
      'cus_1 has had no access to pro_a since 2026-01-01T00:05:00.000Z: the customer was erased (man_1 of subscription sub_1).',
      10,
      [[SUBSCRIPTION, BEGUN]],
      { erasures: [{ at: minute(5), eventId: 'man_1' }] },
    ],
    ['Nothing is known about cus_1 in live: no event names them.', 10, [], { isKnown: false }],
  ])('%s', (summary, at, sources, fields) => {
    expect(explainAt(at, sources, fields).summary).toBe(summary)
  })
})

describe('beside the summary are listed', () => {
  it('the events that wait, in the order in which they happened', () => {
    const event = pay('evt_1', 'payment.succeeded', null, 0, { subscriptionId: null })
    const waiting = {
      event,
      receivedAt: START,
      disposition: 'held',
      source: null,
      reason: 'source_unknown',
    } as const
    const bare = once('evt_2', 'checkout.succeeded', 1, { railProof: null })
    const { summary, held } = explainAt(10, [[PAYMENT, [bare]]], { holds: [waiting] })
    expect(summary).toBe(`${NEVER}. 2 events are waiting.`)
    expect(held).toMatchObject([
      {
        id: 'evt_1',
        source: null,
        reason: 'source_unknown',
        sentence: 'Success: waits, since it names neither a payment nor a subscription.',
      },
      { id: 'evt_2', source: PAYMENT, reason: 'rail_unknown' },
    ])
  })

  it('which events a backfill reported', () => {
    const refund = once(`rec_${'0'.repeat(24)}`, 'payment.refunded', 1)
    const { sources } = explainAt(10, [[PAYMENT, [once('evt_1', 'payment.authorized', 0), refund]]])
    expect(sources[0]?.events[1]?.sentence).toMatch(/^Refund of pay_1, reported by a backfill: /)
  })

  it('no sources that are about other products alone', () => {
    expect(explainAt(10, [[PAYMENT, [once('evt_1', 'payment.authorized', 0, TO_B)]]]).sources).toEqual([])
  })

  it('every block on the product, and when it was lifted', () => {
    const blocks: Block[] = [
      { productId: 'pro_a', from: minute(5), until: minute(7) },
      { productId: 'pro_b', from: minute(6), until: null },
      { productId: null, from: minute(8), until: null },
    ]
    expect(explainAt(10, [[SUBSCRIPTION, BEGUN]], { blocks }).blocks).toEqual([
      {
        ...blocks[0],
        sentence: 'pro_a is blocked from 2026-01-01T00:05:00.000Z to 2026-01-01T00:07:00.000Z.',
      },
      {
        ...blocks[2],
        sentence: 'Every product is blocked from 2026-01-01T00:08:00.000Z until it is unblocked.',
      },
    ])
  })

  it.each<[Events, object[]]>([
    [BEGUN, []],
    [REFUNDED, []],
    [
      CANCELED,
      [
        {
          at: minute(43200),
          eventId: 'evt_3',
          sentence: `Access through subscription sub_1 ends at ${PERIOD_END}: the subscription was canceled.`,
        },
      ],
    ],
    [
      ANNOUNCED,
      [
        {
          at: minute(43200),
          eventId: null,
          sentence: `The subscription sub_1 will be canceled when its period ends, at ${PERIOD_END}; access continues until then.`,
        },
      ],
    ],
    [
      [...BEGUN, sub('evt_3', 'subscription.updated', 100, { cancelAtPeriodEnd: true })],
      [
        {
          at: null,
          eventId: null,
          sentence:
            'The subscription sub_1 will be canceled when its period ends; access continues until then.',
        },
      ],
    ],
  ])('the ends that lie ahead: %#', (events, ends) => {
    const own = { source: SUBSCRIPTION, reason: 'canceled' }
    expect(explainAt(200, [[SUBSCRIPTION, events]]).ends).toEqual(ends.map((end) => ({ ...own, ...end })))
  })
})
