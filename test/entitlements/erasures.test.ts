import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { afterErasures, foldErasures, manualSource } from '../../src/entitlements/by-hand.js'
import { entitlementOf } from '../../src/entitlements/entitlement.js'
import { foldSource } from '../../src/entitlements/fold-source.js'
import { isGrantAct, type SourceEvent } from '../../src/entitlements/kept-event.js'
import type { SourceKey, SourceState } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import type { ManualEvent } from '../../src/provider/event.js'
import { minute, paymentEvent, subscriptionEvent } from './events.js'
import { explainAt } from './explained.js'
import { subscriptionHistory, unlawfulHistory } from './histories.js'
import { byHand } from './manual-events.js'
import { policies } from './policies.js'

const SUBSCRIPTION: SourceKey = { kind: 'subscription', id: 'sub_1' }
const pay = (id: string, at: number, fields: Partial<Parameters<typeof paymentEvent>[0]> = {}) =>
  paymentEvent({
    type: 'payment.authorized',
    paymentId: id,
    subscriptionId: 'sub_1',
    createdAt: minute(at),
    ...fields,
  })
const cycle = (type: 'subscription.created' | 'subscription.renewed', at: number) =>
  subscriptionEvent({ type, createdAt: minute(at) })

const stateOf = (key: SourceKey, events: readonly SourceEvent[]): SourceState =>
  foldSource(key, events, DOCUMENTED_POLICY)

/** How `pro_a` stands at a minute for a customer with these sources, to whom this was done by hand. */
function standing(at: number, sources: readonly SourceState[], acts: readonly ManualEvent[]) {
  const grants = acts.filter(isGrantAct)
  const [first] = grants
  const granted = first === undefined ? [] : [foldSource(manualSource(first), grants, DOCUMENTED_POLICY)]
  const erasures = foldErasures(acts)
  const own = [...sources, ...granted].map((source) => afterErasures(source, erasures))
  return entitlementOf('pro_a', own, [], { at: minute(at) })
}

describe('an erasure', () => {
  const begun = [pay('pay_1', 0), cycle('subscription.created', 1)]
  const erased = byHand('manual.erased', 100, { productId: null })

  it('15: ends what began before, through all renewals; a new purchase stands', () => {
    const renewed = [...begun, pay('pay_2', 43_200), cycle('subscription.renewed', 43_201)]
    const source = stateOf(SUBSCRIPTION, renewed)
    expect(standing(99, [source], [erased])).toMatchObject({ active: true, status: 'ending' })
    const ended = { active: false, status: 'revoked', until: minute(100), since: null }
    expect(standing(100, [source], [erased])).toMatchObject(ended)
    expect(standing(43_300, [source], [erased])).toMatchObject(ended)

    const bought = stateOf({ kind: 'payment', id: 'pay_9' }, [pay('pay_9', 50_000, { subscriptionId: null })])
    expect(standing(50_000, [source, bought], [erased])).toMatchObject({
      active: true,
      since: minute(50_000),
    })
  })

  it('names the act by which access ended', () => {
    expect(standing(100, [stateOf(SUBSCRIPTION, begun)], [erased]).sources).toMatchObject([
      { active: false, reason: 'revoked', eventId: erased.id },
    ])
  })

  it('is not undone by a plan change of what it ended', () => {
    const moved = subscriptionEvent({
      type: 'subscription.updated',
      productId: 'pro_b',
      createdAt: minute(200),
    })
    const back = subscriptionEvent({
      type: 'subscription.updated',
      productId: 'pro_a',
      createdAt: minute(300),
    })
    const source = stateOf(SUBSCRIPTION, [...begun, moved, back])
    expect(source.intervals).toHaveLength(3)
    expect(afterErasures(source, foldErasures([erased])).intervals).toEqual([
      { productId: 'pro_a', from: minute(0), until: minute(100), reason: 'revoked', eventId: erased.id },
    ])
  })

  it('leaves a subscription that begins anew after it had ended', () => {
    const expired = subscriptionEvent({ type: 'subscription.expired', createdAt: minute(200) })
    const source = stateOf(SUBSCRIPTION, [...begun, expired, pay('pay_2', 300)])
    expect(standing(300, [source], [erased])).toMatchObject({ active: true, since: minute(300) })
  })

  it('leaves what had ended before as it ended', () => {
    const refunded = [...begun, pay('pay_1', 50, { type: 'payment.refunded' })]
    expect(standing(100, [stateOf(SUBSCRIPTION, refunded)], [erased])).toMatchObject({
      status: 'refunded',
      until: minute(50),
    })
  })

  it('ends a grant by hand; a later one gives access from then on, until its own end', () => {
    const grants = [
      byHand('manual.granted', 10),
      erased,
      byHand('manual.granted', 120, { until: minute(140) }),
    ]
    expect(standing(99, [], grants)).toMatchObject({ active: true })
    expect(standing(110, [], grants)).toMatchObject({ active: false, status: 'revoked', until: minute(100) })
    expect(standing(130, [], grants)).toMatchObject({ active: true, since: minute(120), until: minute(140) })
    expect(standing(140, [], grants)).toMatchObject({ active: false, status: 'completed' })
  })

  it('counts from its act on where the clock is behind', () => {
    const own = afterErasures(stateOf(SUBSCRIPTION, begun), foldErasures([erased]))
    expect(entitlementOf('pro_a', [own], [], { now: minute(50) })).toMatchObject({ status: 'revoked' })
  })

  it('is told in the explanation', () => {
    const { summary, erasures, sources } = explainAt(110, [[SUBSCRIPTION, begun]], {
      erasures: foldErasures([erased]),
    })
    expect(summary).toMatch(
      /^cus_1 has no access to pro_a since .*: the customer was erased \(man_manual\.erased_100 of /,
    )
    expect(erasures.map(({ sentence }) => sentence)).toEqual([
      `cus_1 was erased at ${new Date(minute(100)).toISOString()}: access that began before ended with that.`,
    ])
    expect(sources).toMatchObject([{ intervals: [{ until: minute(100) }] }])
  })
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
        const { intervals } = afterErasures(state, foldErasures(acts))
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
        const left = afterErasures(state, foldErasures(acts))
        expect(afterErasures(state, foldErasures([...acts].reverse()))).toEqual(left)
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
