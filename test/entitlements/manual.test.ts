import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { afterErasures, foldBlocks, foldErasures, manualSource } from '../../src/entitlements/by-hand.js'
import { entitlementOf, entitlementsOf } from '../../src/entitlements/entitlement.js'
import { foldSource } from '../../src/entitlements/fold-source.js'
import { isGrantAct } from '../../src/entitlements/kept-event.js'
import type { Entitlement, SourceState } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import type { ManualEvent } from '../../src/provider/event.js'
import { minute, paymentEvent } from './events.js'
import { byHand } from './manual-events.js'

const PAID: SourceState = foldSource(
  { kind: 'payment', id: 'pay_1' },
  [paymentEvent({ type: 'payment.authorized', paymentId: 'pay_1', createdAt: minute(0) })],
  DOCUMENTED_POLICY,
)

function grantedBy(events: readonly ManualEvent[]): SourceState[] {
  const acts = events.filter(isGrantAct)
  const [first] = acts
  return first === undefined ? [] : [foldSource(manualSource(first), acts, DOCUMENTED_POLICY)]
}

/** How `pro_a` stands at a minute, by these acts and sources. */
function standing(
  at: number,
  events: readonly ManualEvent[],
  others: readonly SourceState[] = [],
): Entitlement {
  const erasures = foldErasures(events)
  const sources = [...grantedBy(events), ...others].map((source) => afterErasures(source, erasures))
  return entitlementOf('pro_a', sources, foldBlocks(events), { at: minute(at) })
}

describe('a grant by hand', () => {
  it('gives access for good where it has no end', () => {
    const acts = [byHand('manual.granted', 10)]
    expect(standing(9, acts)).toMatchObject({ active: false, status: 'none' })
    expect(standing(10, acts)).toMatchObject({
      active: true,
      status: 'active',
      since: minute(10),
      until: null,
      sources: [{ kind: 'manual', rail: 'unknown' }],
    })
  })

  it('gives access until its end, and has completed then', () => {
    const acts = [byHand('manual.granted', 10, { until: minute(20) })]
    expect(standing(19, acts)).toMatchObject({ active: true, status: 'ending', until: minute(20) })
    expect(standing(20, acts)).toMatchObject({ active: false, status: 'completed', until: minute(20) })
  })

  it('ends when it is revoked', () => {
    const acts = [byHand('manual.granted', 10), byHand('manual.revoked', 15)]
    expect(standing(14, acts)).toMatchObject({ active: true })
    expect(standing(15, acts)).toMatchObject({ active: false, status: 'revoked', until: minute(15) })
  })

  it('replaces the end of the one before it, without a gap', () => {
    const acts = [
      byHand('manual.granted', 10, { until: minute(20) }),
      byHand('manual.granted', 15, { until: minute(30) }),
    ]
    expect(standing(25, acts)).toMatchObject({ active: true, since: minute(10), until: minute(30) })
  })

  it('may be given again after it was revoked', () => {
    const acts = [byHand('manual.granted', 1), byHand('manual.revoked', 2), byHand('manual.granted', 3)]
    expect(standing(3, acts)).toMatchObject({ active: true, since: minute(3) })
  })

  it('leaves what was paid for alone when it is revoked', () => {
    const acts = [byHand('manual.granted', 10), byHand('manual.revoked', 15)]
    expect(standing(15, acts, [PAID])).toMatchObject({ active: true, status: 'active', since: minute(0) })
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

describe('a block', () => {
  it('takes access away while it stands, and shows the sources as they are', () => {
    const acts = [byHand('manual.blocked', 10), byHand('manual.unblocked', 20)]
    expect(standing(9, acts, [PAID])).toMatchObject({ active: true })
    const blocked = {
      active: false,
      status: 'blocked',
      since: null,
      sources: [{ id: 'pay_1', active: true }],
    }
    expect(standing(10, acts, [PAID])).toMatchObject(blocked)
    expect(standing(19, acts, [PAID])).toMatchObject(blocked)
  })

  it('leaves access to begin anew where it is lifted', () => {
    const acts = [byHand('manual.blocked', 10), byHand('manual.unblocked', 20)]
    expect(standing(20, acts, [PAID])).toMatchObject({ active: true, since: minute(20) })
    expect(standing(5, acts, [PAID])).toMatchObject({ active: true, since: minute(0) })
  })

  it('on every product holds for each of them', () => {
    const acts = [byHand('manual.blocked', 10, { productId: null })]
    expect(standing(10, acts, [PAID])).toMatchObject({ active: false, status: 'blocked' })
  })

  it('on one product leaves the others alone', () => {
    const acts = [byHand('manual.blocked', 10, { productId: 'pro_b' })]
    expect(standing(10, acts, [PAID])).toMatchObject({ active: true, since: minute(0) })
  })

  it('shows for a product that was never granted', () => {
    const blocks = foldBlocks([byHand('manual.blocked', 10)])
    expect(entitlementsOf([], blocks, { at: minute(10) })).toMatchObject([
      { productId: 'pro_a', active: false, status: 'blocked', sources: [] },
    ])
    expect(entitlementsOf([], blocks, { at: minute(9) })).toEqual([])
  })

  it('on every product outlasts the lifting of the block on one', () => {
    const acts = [byHand('manual.blocked', 10, { productId: null }), byHand('manual.unblocked', 20)]
    expect(standing(20, acts, [PAID])).toMatchObject({ status: 'blocked' })
  })

  it('is lifted with every other when all are', () => {
    const acts = [byHand('manual.blocked', 10), byHand('manual.unblocked', 20, { productId: null })]
    expect(standing(20, acts, [PAID])).toMatchObject({ active: true, since: minute(20) })
  })

  it('counts from its act on where the clock is behind', () => {
    const others = [
      byHand('manual.blocked', 1, { productId: 'pro_b' }),
      byHand('manual.unblocked', 2, { productId: 'pro_b' }),
    ]
    const blocks = foldBlocks([...others, byHand('manual.blocked', 10)])
    expect(entitlementOf('pro_a', [PAID], blocks, { now: minute(5) })).toMatchObject({ status: 'blocked' })
  })
})

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

it('acts by hand end in the same access, whatever order they are read in', () => {
  const histories = fc
    .uniqueArray(anyAct, { minLength: 1, maxLength: 8, selector: ({ createdAt }) => createdAt })
    .chain((acts) => fc.tuple(fc.constant(acts), fc.shuffledSubarray(acts, { minLength: acts.length })))
  fc.assert(
    fc.property(histories, fc.nat(22), ([acts, shuffled], at) => {
      expect(standing(at, shuffled, [PAID])).toEqual(standing(at, acts, [PAID]))
    }),
  )
})

it('access by hand is that of the newest act, read plainly', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(anyAct, { minLength: 1, maxLength: 8, selector: ({ createdAt }) => createdAt }),
      fc.nat(22),
      (acts, at) => {
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
      },
    ),
  )
})
