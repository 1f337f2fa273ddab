import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { foldSource } from '../../src/entitlements/fold-source.js'
import type { GrantAct } from '../../src/entitlements/kept-event.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import { readSubscription } from '../../src/entitlements/reading.js'
import type { Note } from '../../src/entitlements/reasons.js'
import { minute } from './events.js'
import { explained, pay, SUBSCRIPTION, sub } from './explained.js'
import { type History, paymentHistory, subscriptionHistory, unlawfulHistory } from './histories.js'
import { policies } from './policies.js'

const begun = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 0)]

describe('the explanation of a source', () => {
  const histories: readonly (readonly [string, fc.Arbitrary<History>])[] = [
    ['one-time payments', paymentHistory],
    ['lawful subscriptions', subscriptionHistory],
    ['any type at any time', unlawfulHistory],
  ]

  it.each(histories)(
    'has every event once, as a sentence, and the intervals of the fold: %s',
    (_, history) => {
      fc.assert(
        fc.property(history, policies, ({ key, events }, policy) => {
          const source = explained(key, events, policy)
          expect(source.events.map(({ id }) => id).sort()).toEqual(events.map(({ id }) => id).sort())
          for (const { sentence } of source.events) expect(sentence).toMatch(/^[A-Z].*: .+\.$/)
          for (const { sentence } of source.events)
            expect(sentence).not.toMatch(/undefined|null| {2}| \.|by\./)
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
        const source = explained(key, events, policy)
        const { walk } = readSubscription(events, policy)
        expect(source.events.map(({ id }) => id)).toEqual(walk.map(({ event }) => event.id))
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
          const at = source.events.filter(({ createdAt }) => createdAt === from)
          const begins = at
            .flatMap(({ changes }) => changes)
            .some((change) => {
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
      ...begun,
      pay('evt_3', 'payment.succeeded', 'pay_2', 10, { railProof: null }),
      pay('evt_4', 'checkout.canceled', 'pay_3', 20),
      sub('evt_5', 'subscription.expired', 30),
    ])
    expect(source.events.map(({ id, row }) => [id, row])).toEqual([
      ['evt_1', { rail: 'card', on: 'grant' }],
      ['evt_2', null],
      ['evt_3', { rail: 'unknown', on: 'grant' }],
      ['evt_4', null],
      ['evt_5', { rail: 'card', on: 'takeBack' }],
    ])
  })

  it('tells what was granted and revoked by hand', () => {
    const key: SourceKey = { kind: 'manual', id: 'cus_1/pro_a' }
    const source = explained(key, [
      byHand('man_1', 'manual.granted', 0, minute(1000)),
      byHand('man_2', 'manual.revoked', 10),
      byHand('man_3', 'manual.revoked', 20),
      byHand('man_4', 'manual.granted', 30),
    ])
    expect(source.events.map(({ note }) => note)).toEqual([
      { code: 'granted', until: minute(1000) },
      { code: 'revoked' },
      { code: 'not_granted' },
      { code: 'granted', until: null },
    ])
    expect(source.events.map(({ sentence }) => sentence)).toEqual([
      'Grant by hand: until 2026-01-01T16:40:00.000Z. Access to pro_a begins. It now ends at 2026-01-01T16:40:00.000Z: its fixed time is over.',
      'End of the grant by hand: what was granted by hand is taken back. Access to pro_a ends.',
      'End of the grant by hand: nothing was granted by hand at that time.',
      'Grant by hand: for good. Access to pro_a begins.',
    ])
  })

  it('tells what was done by hand in the order in which it was done, and of no end that is past', () => {
    const key: SourceKey = { kind: 'manual', id: 'cus_1/pro_a' }
    const source = explained(key, [
      byHand('man_4', 'manual.granted', 30, minute(30)),
      byHand('man_3', 'manual.granted', 20, minute(25)),
      byHand('man_2', 'manual.revoked', 10),
      byHand('man_1', 'manual.granted', 0, minute(10)),
    ])
    expect(source.events.map(({ id, sentence }) => [id, sentence])).toEqual([
      [
        'man_1',
        'Grant by hand: until 2026-01-01T00:10:00.000Z. Access to pro_a begins. It now ends at 2026-01-01T00:10:00.000Z: its fixed time is over.',
      ],
      ['man_2', 'End of the grant by hand: nothing was granted by hand at that time.'],
      [
        'man_3',
        'Grant by hand: until 2026-01-01T00:25:00.000Z. Access to pro_a begins. It now ends at 2026-01-01T00:25:00.000Z: its fixed time is over.',
      ],
      ['man_4', 'Grant by hand: until 2026-01-01T00:30:00.000Z.'],
    ])
  })
})

function byHand(id: string, type: GrantAct['type'], at: number, until: number | null = null): GrantAct {
  const whose = { customerId: 'cus_1', productId: 'pro_a' }
  return { id, subject: 'manual', type, createdAt: minute(at), ...whose, until }
}
