import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Block } from '../../src/entitlements/blocks.js'
import { explain, type StoredAccount } from '../../src/entitlements/explain.js'
import type { NoteCode } from '../../src/entitlements/explain-note.js'
import { explainSource } from '../../src/entitlements/explain-source.js'
import { foldSource } from '../../src/entitlements/fold-source.js'
import type { GrantAct } from '../../src/entitlements/manual-source.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { readSubscription } from '../../src/entitlements/subscription-reading.js'
import { minute, paymentEvent, START } from './events.js'
import { explained, once, PAYMENT, pay, SUBSCRIPTION, sub } from './explained.js'
import { type History, paymentHistory, subscriptionHistory, unlawfulHistory } from './histories.js'
import { policies } from './policies.js'

const begun = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 0)]

type Sources = readonly (readonly [
  SourceKey,
  readonly StoredAccount['sources'][number]['events'][number]['event'][],
])[]

function account(sources: Sources, fields: Partial<StoredAccount> = {}): StoredAccount {
  return {
    customerId: 'cus_1',
    environment: 'live',
    isKnown: true,
    sources: sources.map(([key, events]) => ({
      key,
      events: events.map((event) => ({ event, receivedAt: event.createdAt, disposition: 'applied' })),
    })),
    blocks: [],
    holds: [],
    ...fields,
  }
}

function explainAt(at: number, sources: Sources, fields: Partial<StoredAccount> = {}) {
  return explain(account(sources, fields), 'pro_a', { at: minute(at) }, DOCUMENTED_POLICY)
}

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
          const stored = events.map((event) => ({ event, receivedAt: 0, disposition: 'applied' as const }))
          const { source, state } = explainSource(key, stored, policy)
          expect(source.events.map(({ id }) => id).sort()).toEqual(events.map(({ id }) => id).sort())
          for (const { sentence } of source.events) expect(sentence).toMatch(/^[A-Z].*: .+\.$/)
          for (const { sentence } of source.events)
            expect(sentence).not.toMatch(/undefined|null| {2}| \.|by\./)
          expect(source.intervals).toEqual(foldSource(key, events, policy).state.intervals)
          expect(state).toEqual(foldSource(key, events, policy).state)
        }),
        { numRuns: 200 },
      )
    },
  )

  it('lists the events of a subscription in the order in which they are walked', () => {
    fc.assert(
      fc.property(subscriptionHistory, policies, ({ key, events }, policy) => {
        const { source } = explained(key, events, policy)
        const { walk } = readSubscription(events, policy)
        expect(source.events.map(({ id }) => id)).toEqual(walk.map(({ event }) => event.id))
      }),
      { numRuns: 100 },
    )
  })

  it('tells of every beginning of access that the intervals show', () => {
    fc.assert(
      fc.property(subscriptionHistory, policies, ({ key, events }, policy) => {
        const { source, state } = explained(key, events, policy)
        fc.pre(Object.keys(state.held).length === 0)
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
    const withoutEffect: readonly NoteCode[] = [
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
        for (const { note, changes } of explained(key, events, policy).source.events) {
          if (!withoutEffect.includes(note.code)) continue
          for (const { code } of changes) expect(code).not.toMatch(/^access_(given|ended)$/)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('shows the row of the policy that each event met', () => {
    const { source } = explained(SUBSCRIPTION, [
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
    const { source } = explained(key, [
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
})

describe('the summary', () => {
  it('says by what there is access, and that no end is known', () => {
    expect(explainAt(10, [[SUBSCRIPTION, begun]]).summary).toBe(
      'cus_1 has access to pro_a since 2026-01-01T00:00:00.000Z, by subscription sub_1. No end is known.',
    )
  })

  it('calls what was granted by hand so', () => {
    const key: SourceKey = { kind: 'manual', id: 'cus_1/pro_a' }
    const granted = explainAt(10, [[key, [byHand('man_1', 'manual.granted', 0, minute(1000))]]])
    expect(granted.summary).toBe(
      'cus_1 has access to pro_a since 2026-01-01T00:00:00.000Z, by a grant by hand. It ends at 2026-01-01T16:40:00.000Z: its fixed time is over.',
    )
  })

  it('says when access ends, and why', () => {
    const canceled = sub('evt_3', 'subscription.canceled', 100, {
      cancelAtPeriodEnd: true,
      expiresAt: minute(43200),
    })
    const { summary, ends } = explainAt(200, [[SUBSCRIPTION, [...begun, canceled]]])
    expect(summary).toContain('It ends at 2026-01-31T00:00:00.000Z: the subscription was canceled.')
    expect(ends).toEqual([
      {
        source: SUBSCRIPTION,
        at: minute(43200),
        reason: 'canceled',
        eventId: 'evt_3',
        sentence:
          'Access by subscription sub_1 ends at 2026-01-31T00:00:00.000Z: the subscription was canceled.',
      },
    ])
  })

  it('tells of a cancellation that is only announced', () => {
    const told = sub('evt_3', 'subscription.updated', 100, {
      cancelAtPeriodEnd: true,
      expiresAt: minute(43200),
    })
    expect(explainAt(200, [[SUBSCRIPTION, [...begun, told]]]).ends).toMatchObject([
      { at: minute(43200), reason: 'canceled', eventId: null },
    ])
  })

  it('says that a payment is overdue while access goes on', () => {
    const overdue = sub('evt_3', 'subscription.past_due', 100)
    expect(explainAt(200, [[SUBSCRIPTION, [...begun, overdue]]]).summary).toContain('A payment is overdue')
  })

  it('says since when there is no access, why, and by which event', () => {
    const refund = pay('evt_3', 'payment.refunded', 'pay_1', 100)
    expect(explainAt(200, [[SUBSCRIPTION, [...begun, refund]]]).summary).toBe(
      'cus_1 has no access to pro_a since 2026-01-01T01:40:00.000Z: the payment was refunded (evt_3 of subscription sub_1).',
    )
  })

  it('says that access had not begun at the instant asked about', () => {
    const { summary, entitlement } = explainAt(-1, [[SUBSCRIPTION, begun]])
    expect(entitlement.status).toBe('none')
    expect(summary).toBe('cus_1 had not been given access to pro_a by 2025-12-31T23:59:00.000Z.')
  })

  it('tells of payments that never gave anything', () => {
    const { summary, sources } = explainAt(10, [[PAYMENT, [once('evt_1', 'payment.failed', 0)]]])
    expect(sources).toMatchObject([{ id: 'pay_1', intervals: [], events: [{ id: 'evt_1' }] }])
    expect(summary).toBe(
      'cus_1 has never had access to pro_a. Failure of pay_1: access did not depend on pay_1.',
    )
  })

  it('leaves out sources that are about other products alone', () => {
    const other = once('evt_1', 'payment.authorized', 0, { productId: 'pro_z' })
    const { summary, sources } = explainAt(10, [[PAYMENT, [other]]])
    expect(sources).toEqual([])
    expect(summary).toBe('cus_1 has never had access to pro_a: no event of theirs is about it.')
  })

  it('says that nothing is known of a customer never seen', () => {
    expect(explainAt(10, [], { isKnown: false })).toEqual({
      customerId: 'cus_1',
      productId: 'pro_a',
      environment: 'live',
      asOf: minute(10),
      entitlement: {
        productId: 'pro_a',
        active: false,
        status: 'none',
        since: null,
        until: null,
        pastDue: false,
        sources: [],
      },
      summary: 'Nothing is known of cus_1 in live: no event names them.',
      sources: [],
      held: [],
      blocks: [],
      ends: [],
    })
  })

  it('says that events wait, and lists them', () => {
    const waiting = {
      event: pay('evt_1', 'payment.succeeded', null, 0, { subscriptionId: null }),
      receivedAt: START,
      disposition: 'held',
      source: null,
      reason: 'source_unknown',
    } as const
    const bare = once('evt_2', 'checkout.succeeded', 0, { railProof: null })
    const { summary, held } = explainAt(10, [[PAYMENT, [bare]]], { holds: [waiting] })
    expect(summary).toBe('cus_1 has never had access to pro_a. 2 events wait.')
    expect(held).toMatchObject([
      { id: 'evt_2', source: PAYMENT, reason: 'rail_unknown' },
      {
        id: 'evt_1',
        source: null,
        reason: 'source_unknown',
        sentence: 'Success: waits, since it names neither a payment nor a subscription.',
      },
    ])
  })

  it('tells of blocks before anything else', () => {
    const blocks: Block[] = [{ productId: null, from: minute(5), until: null }]
    const told = explainAt(10, [[SUBSCRIPTION, begun]], { blocks })
    expect(told.summary).toBe('cus_1 is blocked from pro_a.')
    expect(told.blocks).toMatchObject([
      { sentence: 'Every product is blocked from 2026-01-01T00:05:00.000Z until it is unblocked.' },
    ])
  })
})

function byHand(id: string, type: GrantAct['type'], at: number, until: number | null = null): GrantAct {
  const {
    railProof: _proof,
    paymentId: _payment,
    subscriptionId: _subscription,
    ...facts
  } = paymentEvent({
    id,
    type: 'payment.settled',
    paymentId: null,
    createdAt: minute(at),
  })
  const customerId = 'cus_1'
  const productId = 'pro_a'
  return { ...facts, subject: 'manual', type, customerId, productId, until, actor: 'support', reason: null }
}
