import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { viewSource } from '../../src/entitlements/entitlement.js'
import { foldSource } from '../../src/entitlements/fold-source.js'
import type { SourceEvent } from '../../src/entitlements/model.js'
import { isNewerLink, linkOf, type PaymentLink, sourceOf } from '../../src/entitlements/source-of.js'
import { mixedHistory, paymentHistory, subscriptionHistory, unlawfulHistory } from './histories.js'
import { plainHeld } from './plain/held.js'
import { plainIntervals } from './plain/plain-fold.js'
import { isPastDue, showsCancelAtPeriodEnd } from './plain/shown.js'
import { readSource } from './plain/source.js'
import { plainSourceKeys } from './plain/source-keys.js'
import { policies } from './policies.js'

const RUNS = Number(process.env.PROPERTY_RUNS ?? 2_000)

const HISTORIES = [
  ['one-time payments', paymentHistory],
  ['lawful subscriptions', subscriptionHistory],
  ['any type at any time', unlawfulHistory],
] as const

describe('the fold agrees with a second, plain reading of the rules', () => {
  it.each(HISTORIES)('about access, its ends and their reasons, and what waits: %s', (_name, history) => {
    fc.assert(
      fc.property(history, policies, ({ key, events }, policy) => {
        const state = foldSource(key, events as readonly SourceEvent[], policy)
        expect(state.intervals).toEqual(plainIntervals(events, key, policy))
        expect(state.held).toEqual(plainHeld(events, key, policy))
      }),
      { numRuns: RUNS },
    )
  })

  it.each(HISTORIES)('about what it shows beside access: %s', (_name, history) => {
    fc.assert(
      fc.property(history, policies, ({ key, events }, policy) => {
        const state = foldSource(key, events as readonly SourceEvent[], policy)
        const source = readSource(events, key, policy)
        const intervals = plainIntervals(events, key, policy)
        for (const productId of new Set(intervals.map((interval) => interval.productId))) {
          const view = viewSource(state, productId, state.newestAt)
          if (!view?.active) continue
          expect(view.pastDue).toBe(isPastDue(source, intervals, state.newestAt))
          expect(view.cancelAtPeriodEnd).toBe(showsCancelAtPeriodEnd(source, state.newestAt))
        }
      }),
      { numRuns: RUNS },
    )
  })

  it('about the source that each event belongs to', () => {
    fc.assert(
      fc.property(mixedHistory, (events) => {
        const links = new Map<string, PaymentLink>()
        for (const link of events.map(linkOf)) {
          if (link && isNewerLink(link, links.get(link.paymentId))) links.set(link.paymentId, link)
        }
        const keys = events.map((event) => [event.id, sourceOf(event, (id) => links.get(id)?.subscriptionId)])
        expect(new Map(keys as [string, ReturnType<typeof sourceOf>][])).toEqual(plainSourceKeys(events))
      }),
      { numRuns: RUNS },
    )
  })
})
