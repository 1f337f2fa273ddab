import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  answerFor,
  entitlementOf,
  entitlementsOf,
  givesSameAccess,
  nextChangeAfter,
} from '../../src/entitlements/entitlement.js'
import type { AccessInterval, Block, SourceState } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { minute, START } from './events.js'
import { foldAll, foldedEntitlements } from './fold-all.js'
import { mixedHistory } from './histories.js'
import { plainSources } from './plain/ask.js'
import { plainEntitlements } from './plain/entitlements.js'
import { policies } from './policies.js'

const YEAR_MS = 365 * 24 * 3_600_000

interface Told extends Partial<SourceState> {
  /** Access to one product from a minute until another, or for good. */
  readonly gave: readonly (readonly [productId: string, from: number, until: number | null])[]
}

/** A one-time payment by card that gave access as told, unless the fields tell otherwise. */
function sourceState(id: string, { gave, ...fields }: Told): SourceState {
  const intervals = gave.map(([productId, from, until]): AccessInterval => {
    const eventId = `evt_${id}_${from}`
    if (until === null) return { productId, from: minute(from), until, reason: null, eventId }
    return { productId, from: minute(from), until: minute(until), reason: 'refunded', eventId }
  })
  return {
    kind: 'payment',
    id,
    customerId: 'cus_1',
    rail: 'card',
    intervals,
    pastDueSince: null,
    cancelAtPeriodEnd: false,
    periodEnd: null,
    providerStatus: null,
    newestAt: minute(0),
    cyclesWithoutPayment: 0,
    held: {},
    ...fields,
  }
}

const block = (productId: string | null, from: number, until: number | null = null): Block => ({
  productId,
  from: minute(from),
  until: until === null ? null : minute(until),
})

const GIVES = sourceState('pay_1', { gave: [['pro_a', 0, null]] })
const ENDS = sourceState('pay_1', { gave: [['pro_a', 10, 20]] })

const listedAt = (at: number, sources: readonly SourceState[], blocks: readonly Block[] = []) =>
  entitlementsOf(sources, blocks, { at: minute(at) }).map(({ productId, status }) => `${productId} ${status}`)

describe('what a customer may use', () => {
  it('is what the plain reading of the rules finds, at any instant after the newest event', () => {
    const time = fc.oneof(fc.nat(YEAR_MS / 10), fc.nat(2 * YEAR_MS))
    fc.assert(
      fc.property(mixedHistory, policies, time, (events, policy, later) => {
        const now = Math.max(...events.map(({ createdAt }) => createdAt)) + later
        expect(foldedEntitlements(events, policy, now)).toEqual(
          plainEntitlements(plainSources(events, policy), now),
        )
      }),
      { numRuns: 1_000 },
    )
  })

  it('shows of each product its sources, in order of kind and then of id, and what each gives', () => {
    const subscription = sourceState('sub_1', { kind: 'subscription', gave: [['pro_a', 0, 5]] })
    const others = [subscription, GIVES, sourceState('pay_0', { gave: [['pro_b', 0, null]] })]
    const view = {
      id: 'pay_1',
      kind: 'payment',
      active: true,
      since: minute(10),
      until: minute(20),
      rail: 'card',
      pastDue: false,
      cancelAtPeriodEnd: false,
      periodEnd: null,
      reason: 'refunded',
      eventId: 'evt_pay_1_10',
    }
    const answer = { productId: 'pro_a', pastDue: false, until: minute(20) }
    const ended = [{ ...view, active: false, since: null }]
    expect(entitlementOf('pro_a', others, [], { at: minute(9) }).sources.map(({ id }) => id)).toEqual([
      'pay_1',
      'sub_1',
    ])
    expect(entitlementOf('pro_a', [ENDS], [], { at: minute(10) })).toEqual({
      ...answer,
      active: true,
      status: 'ending',
      since: minute(10),
      sources: [view],
    })
    expect(entitlementOf('pro_a', [ENDS], [], { at: minute(20) })).toEqual({
      ...answer,
      active: false,
      status: 'refunded',
      since: null,
      sources: ended,
    })
  })

  it('leaves out what was not given yet at the instant asked about; asked about now, the newest event counts', () => {
    expect(listedAt(9, [ENDS])).toEqual([])
    expect(listedAt(10, [ENDS])).toEqual(['pro_a ending'])
    const ahead = { ...ENDS, newestAt: minute(10) }
    expect(entitlementsOf([ahead], [], { now: minute(5) })).toMatchObject([{ active: true }])
    const over = sourceState('pay_2', { gave: [['pro_a', 0, 30]], newestAt: minute(30) })
    expect(entitlementsOf([ahead, over], [], { now: minute(5) })).toMatchObject([{ until: minute(20) }])
  })

  it('stays past due over a move to another product, and not over a gap', () => {
    const moved = sourceState('sub_1', {
      gave: [
        ['pro_b', 0, 5],
        ['pro_a', 5, null],
      ],
      pastDueSince: minute(3),
    })
    const pastDueOf = (source: SourceState) => entitlementOf('pro_a', [source], [], { at: minute(9) }).pastDue
    expect(pastDueOf(moved)).toBe(true)
    const [before, after] = moved.intervals
    const gap = [before, { ...after, from: minute(6) }] as AccessInterval[]
    expect(pastDueOf({ ...moved, intervals: gap })).toBe(false)
    expect(pastDueOf({ ...moved, intervals: gap, pastDueSince: minute(7) })).toBe(true)
  })

  it.each<[string, Block[], at: number, string[]]>([
    ['a block on it', [block('pro_a', 5)], 9, ['pro_a blocked']],
    ['a block on everything', [block(null, 5)], 9, ['pro_a blocked']],
    ['a block that is to come', [block('pro_a', 5)], 4, ['pro_a active']],
    ['a block on another product', [block('pro_b', 0, 10)], 9, ['pro_a active', 'pro_b blocked']],
    ['a block that was lifted', [block('pro_b', 0, 10)], 10, ['pro_a active']],
  ])('shows %s', (_what, blocks, at, listed) => {
    expect(listedAt(at, [GIVES], blocks)).toEqual(listed)
  })

  it('is nothing of a customer who is blocked from everything and was never given anything', () => {
    expect(listedAt(9, [], [block(null, 0)])).toEqual([])
  })

  it('shows every fact of a block, and its sources as they are', () => {
    const overdue = { ...GIVES, pastDueSince: minute(1) }
    expect(entitlementOf('pro_a', [overdue], [block('pro_a', 5)], { at: minute(9) })).toEqual({
      productId: 'pro_a',
      active: false,
      status: 'blocked',
      since: null,
      until: null,
      pastDue: false,
      sources: [expect.objectContaining({ active: true, pastDue: true })],
    })
  })

  it('begins where the last block on it was lifted, unless it began later', () => {
    const blocks = [block('pro_a', 2, 4), block(null, 5, 7), block('pro_b', 8, 9)]
    const since = (source: SourceState) => entitlementOf('pro_a', [source], blocks, { at: minute(15) }).since
    expect([since(GIVES), since(ENDS)]).toEqual([minute(7), minute(10)])
  })

  it.each([
    [false, 'none'],
    [true, 'blocked'],
  ])('is none of a product never granted, of a customer who is blocked: %s', (blocked, status) => {
    const about = {
      customerId: 'cus_1',
      environment: 'live',
      asOf: 0,
      validUntil: null,
      cursor: '0.0',
    } as const
    const nothing = { active: false, since: null, until: null, pastDue: false, sources: [] }
    const answer = answerFor('pro_z', { ...about, entitlements: [], blocked })
    expect(answer).toEqual({ ...about, ...nothing, productId: 'pro_z', status })
  })
})

describe('the next change by the clock alone', () => {
  const next = (sources: readonly SourceState[], blocks: readonly Block[] = [], now = minute(5)) =>
    nextChangeAfter(entitlementsOf(sources, blocks, { now }), now)
  const later = sourceState('pay_2', { gave: [['pro_b', 0, 30]] })
  const sooner = sourceState('pay_1', { gave: [['pro_a', 0, 20]] })

  it('is the first end of any source that runs, of any product, blocked or not', () => {
    expect(next([later, sooner, sourceState('pay_3', { gave: [['pro_b', 0, null]] })])).toBe(minute(20))
    expect(next([sooner], [block('pro_a', 1)])).toBe(minute(20))
  })

  it('is none where nothing that runs has an end', () => {
    const over = sourceState('pay_2', { gave: [['pro_a', 0, 3]] })
    expect([next([]), next([over, GIVES])]).toEqual([null, null])
  })

  it('counts from an event ahead of the clock', () => {
    const ahead = { ...sooner, newestAt: minute(10) }
    expect([next([ahead]), next([ahead], [], minute(20))]).toEqual([minute(20), null])
    expect(next([sourceState('pay_1', { gave: [['pro_a', 0, 8]], newestAt: minute(10) })])).toBeNull()
  })
})

/** What is written down of a customer, by product. */
function accessFrom(source: SourceState | undefined, now: number): object[] {
  return entitlementsOf(source ? [source] : [], [], { now }).map((entitlement) => {
    const { productId, active, status, since, until } = entitlement
    return { productId, active, status, since, until, next: nextChangeAfter([entitlement], now) }
  })
}

describe('a source that is said to give the same access', () => {
  it('gives the same access, whatever else came to be known of it', () => {
    let same = 0
    fc.assert(
      fc.property(mixedHistory, fc.nat(), fc.nat(YEAR_MS), (history, cut, later) => {
        const now = START + later
        const before = foldAll(history.slice(0, cut % (history.length + 1)), DOCUMENTED_POLICY)
        for (const after of foldAll(history, DOCUMENTED_POLICY)) {
          const known = before.find(({ kind, id }) => kind === after.kind && id === after.id)
          if (!givesSameAccess(known ?? null, after, now)) continue
          same += 1
          expect(accessFrom(known, now)).toEqual(accessFrom(after, now))
          expect(known?.customerId).toBe(after.customerId)
        }
      }),
    )
    expect(same).toBeGreaterThan(0)
  })

  it('is another one to begin with, and another one that is gone', () => {
    expect(givesSameAccess(null, null, START)).toBe(true)
    expect(givesSameAccess(null, GIVES, START)).toBe(false)
    expect(givesSameAccess(GIVES, null, START)).toBe(false)
  })
})
