import { describe, expect, it } from 'vitest'
import { entitlementOf, entitlementsOf, nextChangeAfter } from '../../src/entitlements/entitlement.js'
import type { Block, SourceState } from '../../src/entitlements/model.js'
import { minute } from './events.js'
import { block, sourceState } from './source-states.js'

/** How `pro_a` stands at a minute. */
function standing(at: number, sources: readonly SourceState[], blocks: readonly Block[] = []) {
  return entitlementOf('pro_a', sources, blocks, { at: minute(at) })
}

describe('since when access runs', () => {
  const first = sourceState('pay_1', { gave: [['pro_a', 0, 10]] })
  const second = sourceState('pay_2', { gave: [['pro_a', 10, 20]] })
  const third = sourceState('pay_3', { gave: [['pro_a', 15, null]] })

  it.each([
    ['oldest first', [first, second, third]],
    ['newest first', [third, second, first]],
    ['in between', [second, first, third]],
  ])('follows one source into the next without a gap, told %s', (_, sources) => {
    expect(standing(30, sources)).toMatchObject({ active: true, since: minute(0) })
  })

  it('begins anew after a gap', () => {
    const late = sourceState('pay_2', { gave: [['pro_a', 11, 20]] })
    expect(standing(12, [first, late])).toMatchObject({ since: minute(11) })
    expect(standing(30, [first, late, third])).toMatchObject({ since: minute(11) })
  })

  it('is the beginning of the earliest of those that run', () => {
    const runs = sourceState('pay_4', { gave: [['pro_a', 3, null]] })
    expect(standing(30, [third, runs])).toMatchObject({ since: minute(3) })
  })

  it('is not moved by access to another product', () => {
    const other = sourceState('pay_0', { gave: [['pro_b', 0, 15]] })
    expect(standing(30, [other, third])).toMatchObject({ since: minute(15) })
  })

  it('is where the last block on it was lifted, unless it began later', () => {
    const blocks = [block('pro_a', 2, 4), block(null, 5, 7), block('pro_b', 8, 9)]
    const runs = sourceState('pay_4', { gave: [['pro_a', 0, null]] })
    expect(standing(30, [runs], blocks)).toMatchObject({ active: true, since: minute(7) })
    expect(standing(30, [third], blocks)).toMatchObject({ active: true, since: minute(15) })
  })
})

describe('the next change by the clock alone', () => {
  const at = minute(5)
  const next = (sources: readonly SourceState[]) => nextChangeAfter(entitlementsOf(sources, [], { at }), at)

  it('is the first end of any source that runs, be it of whichever product', () => {
    const sources = [
      sourceState('pay_1', { gave: [['pro_a', 0, 30]] }),
      sourceState('pay_2', { gave: [['pro_b', 0, 20]] }),
      sourceState('pay_3', { gave: [['pro_b', 0, null]] }),
    ]
    expect(next(sources)).toBe(minute(20))
  })

  it('is none where nothing that runs has an end', () => {
    const ended = sourceState('pay_1', { gave: [['pro_a', 0, 3]] })
    expect(next([ended, sourceState('pay_2', { gave: [['pro_a', 0, null]] })])).toBeNull()
    expect(next([])).toBeNull()
  })

  it('is that of a source that is blocked, too', () => {
    const ends = sourceState('pay_1', { gave: [['pro_a', 0, 20]] })
    expect(nextChangeAfter(entitlementsOf([ends], [block('pro_a', 1)], { at }), at)).toBe(minute(20))
  })

  it('is later than the clock where a source answers as of an event ahead of it', () => {
    const ahead = sourceState('pay_1', { gave: [['pro_a', 0, 20]], newestAt: minute(10) })
    const answers = entitlementsOf([ahead], [], { now: minute(5) })
    expect(nextChangeAfter(answers, minute(5))).toBe(minute(20))
    expect(nextChangeAfter(answers, minute(20))).toBeNull()
  })

  it('is none that an event ahead of the clock has passed already', () => {
    const ahead = sourceState('pay_1', { gave: [['pro_a', 0, 8]], newestAt: minute(10) })
    expect(nextChangeAfter(entitlementsOf([ahead], [], { now: minute(5) }), minute(5))).toBeNull()
  })
})
