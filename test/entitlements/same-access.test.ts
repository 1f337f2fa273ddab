import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { entitlementsOf, givesSameAccess, nextChangeAfter } from '../../src/entitlements/entitlement.js'
import type { SourceState } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { START } from './events.js'
import { foldAll } from './fold-all.js'
import { mixedHistory } from './histories.js'
import { sourceState } from './source-states.js'

const YEAR_MS = 365 * 24 * 3_600_000

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
    const source = sourceState('pay_1', { gave: [['pro_a', 0, null]] })
    expect(givesSameAccess(null, null, START)).toBe(true)
    expect(givesSameAccess(null, source, START)).toBe(false)
    expect(givesSameAccess(source, null, START)).toBe(false)
  })
})
