import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { minute } from '../events.js'
import { mixedHistory, paymentHistory, subscriptionHistory, unlawfulHistory } from '../histories.js'
import { policies } from '../policies.js'
import { heldOf, plainSources } from './ask.js'
import { plainEntitlements } from './entitlements.js'
import { plainHeld } from './held.js'
import { plainIntervals, plainSourceAt } from './plain-fold.js'
import { plainSourceKeys } from './source-keys.js'

/** After every event and every end that the histories tell of. */
const LATER = Date.UTC(2040, 0, 1)

const histories = fc.oneof(paymentHistory, subscriptionHistory, unlawfulHistory)

/** The same events, arrived in another order. */
const rearranged = <T>(events: readonly T[]) => fc.shuffledSubarray([...events], { minLength: events.length })

describe('the plain reading', () => {
  it('gives one source the same access whatever the order of arrival', () => {
    const cases = histories.chain(({ key, events }) =>
      fc.record({
        key: fc.constant(key),
        events: fc.constant(events),
        arrived: rearranged(events),
        policy: policies,
      }),
    )
    fc.assert(
      fc.property(cases, ({ key, events, arrived, policy }) => {
        expect(plainIntervals(arrived, key, policy)).toEqual(plainIntervals(events, key, policy))
        expect(plainHeld(arrived, key, policy)).toEqual(plainHeld(events, key, policy))
      }),
    )
  })

  it('gives every customer the same entitlements whatever the order of arrival', () => {
    const cases = mixedHistory.chain((events) =>
      fc.record({ events: fc.constant(events), arrived: rearranged(events), policy: policies }),
    )
    fc.assert(
      fc.property(cases, ({ events, arrived, policy }) => {
        const sorted = (keys: ReturnType<typeof plainSourceKeys>) => Object.fromEntries(keys)
        expect(sorted(plainSourceKeys(arrived))).toEqual(sorted(plainSourceKeys(events)))
        expect(plainEntitlements(plainSources(arrived, policy), LATER)).toEqual(
          plainEntitlements(plainSources(events, policy), LATER),
        )
        expect(heldOf(arrived, policy)).toEqual(heldOf(events, policy))
      }),
      { numRuns: 50 },
    )
  })

  it('gives access in intervals that are in order and apart, or touch where the product changes', () => {
    fc.assert(
      fc.property(histories, policies, ({ key, events }, policy) => {
        const intervals = plainIntervals(events, key, policy)
        intervals.forEach(({ productId, from, until, reason }, index) => {
          expect(until ?? Number.POSITIVE_INFINITY).toBeGreaterThan(from)
          expect(reason === null).toBe(until === null)
          const next = intervals[index + 1]
          if (!next) return
          expect(next.from).toBeGreaterThanOrEqual(until ?? Number.POSITIVE_INFINITY)
          if (next.from === until) expect(next.productId).not.toBe(productId)
        })
      }),
    )
  })

  it('answers at every instant as its intervals tell', () => {
    fc.assert(
      fc.property(
        histories,
        policies,
        fc.integer({ min: -60, max: 300 * 1440 }),
        ({ key, events }, policy, at) => {
          const instants = [
            minute(at),
            ...events.flatMap(({ createdAt }) => [createdAt - 1, createdAt, createdAt + 1]),
          ]
          const intervals = plainIntervals(events, key, policy)
          for (const instant of instants) {
            const running = intervals.find(
              ({ from, until }) => from <= instant && (until === null || until > instant),
            )
            expect(plainSourceAt(events, key, policy, instant).access).toBe(running?.productId ?? null)
          }
        },
      ),
    )
  })
})
