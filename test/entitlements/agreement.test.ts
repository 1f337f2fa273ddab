import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { foldSource } from '../../src/entitlements/fold-source.js'
import type { SourceEvent } from '../../src/entitlements/reading.js'
import { paymentHistory, subscriptionHistory, unlawfulHistory } from './histories.js'
import { plainHeld } from './plain/held.js'
import { plainIntervals } from './plain/plain-fold.js'
import { policies } from './policies.js'

const RUNS = 30_000

describe('the fold agrees with a second, plain reading of the rules', () => {
  it.each([
    ['one-time payments', paymentHistory],
    ['lawful subscriptions', subscriptionHistory],
    ['any type at any time', unlawfulHistory],
  ])('about access, its ends and their reasons: %s', (_name, history) => {
    fc.assert(
      fc.property(history, policies, ({ key, events }, policy) => {
        const state = foldSource(key, events as readonly SourceEvent[], policy)
        expect(state.intervals).toEqual(plainIntervals(events, key, policy))
        expect(state.held).toEqual(plainHeld(events, key, policy))
      }),
      { numRuns: RUNS },
    )
  })
})
