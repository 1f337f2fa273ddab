import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { afterErasures, foldActs, manualSource } from '../../src/entitlements/by-hand.js'
import { entitlementOf } from '../../src/entitlements/entitlement.js'
import { foldSource } from '../../src/entitlements/fold-source.js'
import type { Entitlement, Instant, SourceKey, SourceState } from '../../src/entitlements/model.js'
import { isGrantAct, type SourceEvent } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import type { ManualEvent } from '../../src/provider/event.js'
import { byHand, minute, once, pay, sub } from './events.js'
import { subscriptionHistory, unlawfulHistory } from './histories.js'
import { policies } from './policies.js'

const SUBSCRIPTION: SourceKey = { kind: 'subscription', id: 'sub_1' }
const BEGUN = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 1)]
const PAID = foldSource(
  { kind: 'payment', id: 'pay_1' },
  [once('evt_1', 'payment.authorized', 0)],
  DOCUMENTED_POLICY,
)

const subscribed = (...events: readonly SourceEvent[]) =>
  foldSource(SUBSCRIPTION, [...BEGUN, ...events], DOCUMENTED_POLICY)

/** How `pro_a` stands at a minute, by these acts and sources. */
function standing(
  at: number | Instant,
  acts: readonly ManualEvent[],
  others: readonly SourceState[] = [],
): Entitlement {
  const grants = acts.filter(isGrantAct)
  const [first] = grants
  const granted = first === undefined ? [] : [foldSource(manualSource(first), grants, DOCUMENTED_POLICY)]
  const { blocks, erasures } = foldActs(acts)
  const sources = [...granted, ...others].map((source) => afterErasures(source, erasures))
  return entitlementOf('pro_a', sources, blocks, typeof at === 'number' ? { at: minute(at) } : at)
}

describe('what is done by hand', () => {
  const anyAct = fc
    .record({
      type: fc.constantFrom(
        'manual.granted',
        'manual.revoked',
        'manual.blocked',
        'manual.unblocked',
        'manual.erased',
      ),
      at: fc.nat(8),
      until: fc.option(fc.integer({ min: 1, max: 12 })),
      productId: fc.constantFrom('pro_a', 'pro_a', null),
    })
    .map(({ type, at, until, productId }) => {
      const isBlock = type === 'manual.blocked' || type === 'manual.unblocked'
      return byHand(type as ManualEvent['type'], at, {
        productId: isBlock ? productId : 'pro_a',
        until: type === 'manual.granted' && until !== null ? minute(at + until) : null,
      })
    })
  const anyActs = fc.uniqueArray(anyAct, {
    minLength: 1,
    maxLength: 8,
    selector: ({ createdAt }) => createdAt,
  })

  it('ends in the same access, whatever order it is read in', () => {
    const histories = anyActs.chain((acts) =>
      fc.tuple(fc.constant(acts), fc.shuffledSubarray(acts, { minLength: acts.length })),
    )
    fc.assert(
      fc.property(histories, fc.nat(22), ([acts, shuffled], at) => {
        expect(standing(at, shuffled, [PAID])).toEqual(standing(at, acts, [PAID]))
      }),
    )
  })

  it('counts as its newest act says, read plainly', () => {
    fc.assert(
      fc.property(anyActs, fc.nat(22), (acts, at) => {
        const past = acts.filter(({ createdAt }) => createdAt <= minute(at))
        const newest = (types: readonly string[]) =>
          past.filter(({ type }) => types.includes(type)).sort((a, b) => b.createdAt - a.createdAt)
        const [grant] = newest(['manual.granted', 'manual.revoked', 'manual.erased'])
        const isGiven = grant?.type === 'manual.granted' && (grant.until === null || grant.until > minute(at))
        const blocks = newest(['manual.blocked', 'manual.unblocked'])
        const all = blocks.find(({ productId }) => productId === null)
        const ofProduct = blocks.find(
          ({ type, productId }) => productId !== null || type === 'manual.unblocked',
        )
        const isBlocked = all?.type === 'manual.blocked' || ofProduct?.type === 'manual.blocked'
        expect(standing(at, acts).active).toBe(isGiven && !isBlocked)
      }),
      { numRuns: 2_000 },
    )
  })

  it('is one source for each customer and product, whatever their ids hold', () => {
    const idOf = (customerId: string, productId: string) =>
      manualSource({ ...byHand('manual.granted', 0), customerId, productId, type: 'manual.granted' }).id
    const anyId = fc.string({ unit: fc.constantFrom('a', '/', '%', '2', 'F', ' ') })
    fc.assert(
      fc.property(fc.tuple(anyId, anyId), fc.tuple(anyId, anyId), (one, other) => {
        expect(idOf(...one) === idOf(...other)).toBe(one[0] === other[0] && one[1] === other[1])
      }),
    )
  })
})

it.each([
  [
    'a grant replaces the end of the one before it, without a gap',
    [byHand('manual.granted', 15, { until: minute(30) })],
    25,
    { since: minute(10), until: minute(30) },
  ],
  [
    'a grant ends when it is revoked',
    [byHand('manual.revoked', 15)],
    15,
    { active: false, status: 'revoked', until: minute(15) },
  ],
  [
    'a grant begins again after it was revoked',
    [byHand('manual.revoked', 12), byHand('manual.granted', 13)],
    13,
    { since: minute(13), until: null },
  ],
  [
    'a block that is made twice is one, and access begins where it is lifted',
    [byHand('manual.blocked', 11), byHand('manual.blocked', 12), byHand('manual.unblocked', 14)],
    15,
    { since: minute(14), until: minute(20) },
  ],
] as const)('%s', (_what, later, at, entitlement) => {
  const acts = [byHand('manual.granted', 10, { until: minute(20) }), ...later]
  expect(standing(at, acts)).toMatchObject(entitlement)
  expect(foldActs(acts).blocks.length).toBeLessThan(2)
})

describe('an erasure', () => {
  const erased = byHand('manual.erased', 100, { productId: null })
  const revoked = { active: false, status: 'revoked', until: minute(100), since: null }

  it('15: ends what began before, through all renewals; a new purchase stands', () => {
    const source = subscribed(
      pay('evt_3', 'payment.authorized', 'pay_2', 43_200),
      sub('evt_4', 'subscription.renewed', 43_201),
    )
    expect(standing(99, [erased], [source])).toMatchObject({ active: true, status: 'ending' })
    const ended = { ...revoked, sources: [{ active: false, reason: 'revoked', eventId: erased.id }] }
    expect(standing(100, [erased], [source])).toMatchObject(ended)
    expect(standing(43_300, [erased], [source])).toMatchObject(ended)
    const events = [once('evt_5', 'payment.authorized', 50_000)]
    const bought = foldSource({ kind: 'payment', id: 'pay_1' }, events, DOCUMENTED_POLICY)
    expect(standing(50_000, [erased], [source, bought])).toMatchObject({
      active: true,
      since: minute(50_000),
    })
  })

  it('is not undone by a plan change of what it ended', () => {
    const changeTo = (productId: string, at: number) =>
      sub(`evt_${at}`, 'subscription.updated', at, { productId })
    const source = subscribed(changeTo('pro_b', 200), changeTo('pro_a', 300))
    expect(source.intervals).toHaveLength(3)
    expect(afterErasures(source, foldActs([erased]).erasures).intervals).toEqual([
      { productId: 'pro_a', from: minute(0), until: minute(100), reason: 'revoked', eventId: erased.id },
    ])
  })

  it('leaves a subscription that begins again after it had ended, and what had ended before', () => {
    const again = subscribed(
      sub('evt_3', 'subscription.expired', 200),
      pay('evt_4', 'payment.authorized', 'pay_2', 300),
    )
    expect(standing(300, [erased], [again])).toMatchObject({ active: true, since: minute(300) })
    const refunded = subscribed(pay('evt_3', 'payment.refunded', 'pay_1', 50))
    expect(standing(100, [erased], [refunded])).toMatchObject({ status: 'refunded', until: minute(50) })
  })

  it('ends a manual grant; a later one gives access from then on, until its own end', () => {
    const acts = [byHand('manual.granted', 10), erased, byHand('manual.granted', 120, { until: minute(140) })]
    expect(standing(110, acts)).toMatchObject(revoked)
    expect(standing(130, acts)).toMatchObject({ active: true, since: minute(120), until: minute(140) })
    expect(standing(140, acts)).toMatchObject({ active: false, status: 'completed' })
  })
})

it.each([
  ['manual.blocked', 'blocked'],
  ['manual.erased', 'revoked'],
] as const)('%s counts from its act on where the clock is behind', (type, status) => {
  const others = [
    byHand('manual.blocked', 1, { productId: 'pro_b' }),
    byHand('manual.unblocked', 2, { productId: 'pro_b' }),
  ]
  expect(standing({ now: minute(5) }, [...others, byHand(type, 10)], [PAID])).toMatchObject({ status })
})

describe('erasures of whatever history', () => {
  const cases = fc.tuple(
    fc.oneof(subscriptionHistory, unlawfulHistory),
    policies,
    fc.uniqueArray(fc.nat(90_000), { minLength: 1, maxLength: 3 }),
  )

  it('leave no access at their instant but what begins there, and none that began before', () => {
    fc.assert(
      fc.property(cases, ([{ key, events }, policy, at]) => {
        const state = foldSource(key, events, policy)
        const acts = at.map((one) => byHand('manual.erased', one))
        const { intervals } = afterErasures(state, foldActs(acts).erasures)
        for (const { createdAt } of acts) {
          for (const { from, until } of intervals) {
            expect(from >= createdAt || (until !== null && until <= createdAt)).toBe(true)
          }
        }
      }),
    )
  })

  it('end in the same access, whatever order they are read in, and give nobody more', () => {
    fc.assert(
      fc.property(cases, fc.nat(100_000), ([{ key, events }, policy, at], now) => {
        const state = foldSource(key, events, policy)
        const acts = at.map((one) => byHand('manual.erased', one))
        const left = afterErasures(state, foldActs(acts).erasures)
        expect(afterErasures(state, foldActs([...acts].reverse()).erasures)).toEqual(left)
        const instant = { at: minute(now) }
        for (const product of new Set(state.intervals.map(({ productId }) => productId))) {
          const isActive = entitlementOf(product, [left], [], instant).active
          const wasActive = entitlementOf(product, [state], [], instant).active
          expect(wasActive || !isActive).toBe(true)
        }
      }),
    )
  })
})
