import { expect, it } from 'vitest'
import type { SourceEvent } from '../../src/entitlements/kept-event.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { Note } from '../../src/entitlements/reasons.js'
import { explained, once, PAYMENT, pay, SUBSCRIPTION, sub } from './explained.js'

interface Case {
  readonly name: string
  readonly key?: SourceKey
  readonly policy?: Policy
  readonly events: readonly SourceEvent[]
  /** What is said of the event `it`. */
  readonly note: Note
}

const begun = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 0)]
const refunded = [...begun, pay('evt_3', 'payment.refunded', 'pay_1', 10)]
const crypto = { railProof: { rail: 'crypto', strength: 3 } } as const

/** A renewal that is read as an end of the subscription as well. */
const RENEWAL_ENDS: Policy = {
  ...DOCUMENTED_POLICY,
  revokeOn: { ...DOCUMENTED_POLICY.revokeOn, card: ['payment.refunded', 'subscription.renewed'] },
}

const CASES: readonly Case[] = [
  {
    name: 'the refund itself, though its payment was reported as paid again since',
    events: [
      ...refunded,
      pay('evt_4', 'checkout.succeeded', 'pay_1', 20),
      pay('it', 'payment.authorized', 'pay_1', 30),
    ],
    note: { code: 'final_take_back', paymentId: 'pay_1', by: 'evt_3' },
  },
  {
    name: 'the first of several refunds',
    events: [
      ...refunded,
      pay('evt_4', 'payment.refunded', 'pay_1', 20),
      pay('it', 'payment.refunded', 'pay_1', 30),
    ],
    note: { code: 'taken_back_already', paymentId: 'pay_1', by: 'evt_3' },
  },
  {
    name: 'the refund of the payment, not of another one',
    events: [
      ...refunded,
      pay('evt_4', 'payment.refunded', 'pay_2', 20),
      pay('it', 'payment.refunded', 'pay_1', 30),
    ],
    note: { code: 'taken_back_already', paymentId: 'pay_1', by: 'evt_3' },
  },
  {
    name: 'the refund, not a renewal that ends the subscription by policy',
    policy: RENEWAL_ENDS,
    events: [
      ...refunded,
      sub('evt_4', 'subscription.renewed', 20, { paymentId: 'pay_1' }),
      pay('it', 'payment.refunded', 'pay_1', 30),
    ],
    note: { code: 'taken_back_already', paymentId: 'pay_1', by: 'evt_3' },
  },
  {
    name: 'the refund of a one-time payment, not what only informed since',
    key: PAYMENT,
    events: [
      once('evt_1', 'payment.refunded', 0),
      once('evt_2', 'payment.completed', 1),
      once('it', 'payment.refunded', 2),
    ],
    note: { code: 'taken_back_already', paymentId: 'pay_1', by: 'evt_1' },
  },
  {
    name: 'what ended the subscription, not what only informed since',
    events: [
      pay('evt_1', 'payment.succeeded', 'pay_1', 0, crypto),
      sub('evt_2', 'subscription.expired', 46000),
      sub('evt_3', 'subscription.updated', 46001),
      pay('it', 'payment.succeeded', 'pay_1', 46002, crypto),
    ],
    note: { code: 'paid_before_end', paymentId: 'pay_1', endedBy: 'evt_2' },
  },
  {
    name: 'the renewal that waited for its payment, not a checkout that began meanwhile',
    events: [
      ...begun,
      sub('evt_3', 'subscription.renewed', 43200),
      pay('evt_4', 'checkout.initiated', 'pay_2', 43201),
      pay('it', 'payment.authorized', 'pay_2', 43202),
    ],
    note: { code: 'paid_waiting_cycle', paymentId: 'pay_2', cycle: 'evt_3' },
  },
]

it.each(CASES)('an explanation refers to $name', ({ key = SUBSCRIPTION, policy, events, note }) => {
  const source = explained(key, events, policy)
  expect(source.events.find(({ id }) => id === 'it')?.note).toEqual(note)
})
