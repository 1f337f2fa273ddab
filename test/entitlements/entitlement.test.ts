import { describe, expect, it } from 'vitest'
import { entitlementFor, entitlementOf, entitlementsOf } from '../../src/entitlements/entitlement.js'
import type { AccessInterval, Block, SourceState } from '../../src/entitlements/model.js'
import { minute } from './events.js'
import { block, sourceState } from './source-states.js'

/** How `pro_a` stands at a minute. */
function standing(at: number, sources: readonly SourceState[], blocks: readonly Block[] = []) {
  return entitlementOf('pro_a', sources, blocks, { at: minute(at) })
}

describe('the list of what a customer may use', () => {
  it('has each product once, in order of the ids, whatever gave it', () => {
    const sources = [
      sourceState('pay_1', { gave: [['pro_c', 0, null]] }),
      sourceState('pay_2', { gave: [['pro_a', 0, null]] }),
      sourceState('pay_3', {
        gave: [
          ['pro_b', 0, 5],
          ['pro_a', 5, null],
        ],
      }),
    ]
    const listed = entitlementsOf(sources, [], { at: minute(9) })
    expect(listed.map(({ productId, status }) => [productId, status])).toEqual([
      ['pro_a', 'active'],
      ['pro_b', 'refunded'],
      ['pro_c', 'active'],
    ])
  })

  it('leaves out what was not given yet at the instant asked about', () => {
    const paid = sourceState('pay_1', { gave: [['pro_a', 10, null]] })
    expect(entitlementsOf([paid], [], { at: minute(9) })).toEqual([])
    expect(entitlementsOf([paid], [], { at: minute(10) })).toMatchObject([{ productId: 'pro_a' }])
  })

  it('shows a product that only a block names, and no longer once the block is lifted', () => {
    const blocks = [block('pro_b', 0, 10)]
    expect(entitlementsOf([], blocks, { at: minute(9) })).toMatchObject([{ status: 'blocked' }])
    expect(entitlementsOf([], blocks, { at: minute(10) })).toEqual([])
  })

  it('shows nothing of a customer who is blocked from everything and was never given anything', () => {
    expect(entitlementsOf([], [block(null, 0)], { at: minute(9) })).toEqual([])
  })

  it('is blocked product by product where everything is blocked', () => {
    const sources = [sourceState('pay_1', { gave: [['pro_a', 0, null]] })]
    expect(entitlementsOf(sources, [block(null, 5)], { at: minute(9) })).toMatchObject([
      { productId: 'pro_a', active: false, status: 'blocked' },
    ])
  })
})

describe('access to one product', () => {
  it('shows its sources in order of kind, then of id, and none that gave only others', () => {
    const gave = [['pro_a', 0, null]] as const
    const sources = [
      sourceState('sub_1', { kind: 'subscription', gave }),
      sourceState('pay_2', { gave }),
      sourceState('cus_1/pro_a', { kind: 'manual', gave }),
      sourceState('pay_1', { gave }),
      sourceState('pay_3', { gave: [['pro_b', 0, null]] }),
    ]
    for (const told of [sources, [...sources].reverse()]) {
      expect(standing(1, told).sources.map(({ id }) => id)).toEqual([
        'cus_1/pro_a',
        'pay_1',
        'pay_2',
        'sub_1',
      ])
    }
  })

  it('begins and ends with its source', () => {
    const paid = sourceState('pay_1', { gave: [['pro_a', 10, 20]] })
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
    expect(standing(10, [paid])).toEqual({
      ...answer,
      active: true,
      status: 'ending',
      since: minute(10),
      sources: [view],
    })
    expect(standing(20, [paid])).toEqual({
      ...answer,
      active: false,
      status: 'refunded',
      since: null,
      sources: [{ ...view, active: false, since: null }],
    })
  })

  it('shows every fact of a block, and its sources as they are', () => {
    const overdue = sourceState('sub_1', { gave: [['pro_a', 0, null]], pastDueSince: minute(1) })
    const blocked = standing(9, [overdue], [block('pro_a', 5)])
    expect(blocked).toEqual({
      productId: 'pro_a',
      active: false,
      status: 'blocked',
      since: null,
      until: null,
      pastDue: false,
      sources: [expect.objectContaining({ id: 'sub_1', active: true, pastDue: true })],
    })
  })

  it('is ending only if all that is left of it ends', () => {
    const ends = sourceState('pay_1', { gave: [['pro_a', 0, 20]] })
    const announced = sourceState('sub_1', { gave: [['pro_a', 0, null]], cancelAtPeriodEnd: true })
    const runs = sourceState('pay_2', { gave: [['pro_a', 0, null]] })
    expect(standing(1, [ends])).toMatchObject({ status: 'ending', until: minute(20) })
    expect(standing(1, [announced])).toMatchObject({ status: 'ending', until: null })
    expect(standing(1, [ends, announced])).toMatchObject({ status: 'ending', until: null })
    expect(standing(1, [ends, runs])).toMatchObject({ status: 'active', until: null })
    expect(standing(1, [announced, runs])).toMatchObject({ status: 'active', until: null })
  })

  it('runs as long as its longest-lasting source', () => {
    const sooner = sourceState('pay_1', { gave: [['pro_a', 0, 20]] })
    const later = sourceState('pay_2', { gave: [['pro_a', 0, 30]] })
    expect(standing(1, [sooner, later]).until).toBe(minute(30))
    expect(standing(1, [sourceState('pay_3', { gave: [['pro_a', 0, 10]] }), sooner]).until).toBe(minute(20))
    expect(standing(20, [sooner, later])).toMatchObject({ active: true, until: minute(30) })
  })

  it('says why the source ended that ended last, in whatever order the sources are', () => {
    const first = sourceState('pay_1', { gave: [['pro_a', 0, 20, 'failed']] })
    const last = sourceState('pay_2', { gave: [['pro_a', 0, 30, 'refunded']] })
    const ended = { active: false, status: 'refunded', until: minute(30), since: null }
    expect(standing(40, [first, last])).toMatchObject(ended)
    expect(standing(40, [{ ...last, id: 'pay_0' }, first])).toMatchObject(ended)
  })

  it('says why the last source in order ended, where several ended at one instant', () => {
    const canceled = sourceState('pay_1', { gave: [['pro_a', 0, 20, 'voided']] })
    const expired = sourceState('sub_1', { kind: 'subscription', gave: [['pro_a', 0, 20, 'expired']] })
    expect(standing(40, [expired, canceled])).toMatchObject({ status: 'expired' })
  })

  it('is past due only while a source is active that is', () => {
    const overdue = sourceState('sub_1', { gave: [['pro_a', 0, 20]], pastDueSince: minute(10) })
    const paid = sourceState('pay_1', { gave: [['pro_a', 0, null]] })
    expect(standing(10, [overdue, paid])).toMatchObject({ pastDue: true })
    expect(standing(20, [overdue, paid])).toMatchObject({ active: true, pastDue: false })
    expect(standing(9, [overdue, paid])).toMatchObject({ pastDue: false })
  })

  it('stays past due when it moves to another product, and not over a gap', () => {
    const moved = sourceState('sub_1', {
      gave: [
        ['pro_b', 0, 5, 'moved'],
        ['pro_a', 5, null],
      ],
      pastDueSince: minute(3),
    })
    expect(standing(9, [moved])).toMatchObject({ pastDue: true })
    const [before, after] = moved.intervals
    const gap = [before, { ...after, from: minute(6) }] as AccessInterval[]
    expect(standing(9, [{ ...moved, intervals: gap }])).toMatchObject({ pastDue: false })
    expect(standing(9, [{ ...moved, intervals: gap, pastDueSince: minute(7) }])).toMatchObject({
      pastDue: true,
    })
  })

  it('answers no earlier than its newest event when asked about now, and as of the instant asked about', () => {
    const ahead = sourceState('pay_1', { gave: [['pro_a', 10, null]], newestAt: minute(10) })
    expect(entitlementOf('pro_a', [ahead], [], { now: minute(5) })).toMatchObject({ active: true })
    expect(entitlementOf('pro_a', [ahead], [], { at: minute(5) })).toMatchObject({ status: 'none' })
  })
})

it.each([
  [false, 'none'],
  [true, 'blocked'],
])('a product never granted, blocked: %s, is no access, %s', (blocked, status) => {
  expect(entitlementFor('pro_z', { entitlements: [], blocked })).toEqual({
    productId: 'pro_z',
    active: false,
    status,
    since: null,
    until: null,
    pastDue: false,
    sources: [],
  })
})
