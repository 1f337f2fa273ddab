import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { advanceSource, type FoldedSource, foldSource } from '../../src/entitlements/fold-source.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import type { Policy } from '../../src/entitlements/policy.js'
import type { SourceEvent } from '../../src/entitlements/reading.js'
import { START } from './events.js'
import { type History, paymentHistory, subscriptionHistory, unlawfulHistory } from './histories.js'
import { policies } from './policies.js'
import { anyPaymentEvent, anySubscriptionEvent, withOwnIds } from './unlawful.js'

const RUNS = Number(process.env.PROPERTY_RUNS ?? 3_000)
const LONG_RUNS = RUNS / 10

/** Through JSON, as a store would keep it. */
function saved(folded: FoldedSource): FoldedSource {
  return JSON.parse(JSON.stringify(folded)) as FoldedSource
}

/** Takes events in one by one, newest state first, folding all again only where that is asked for. */
function foldOneByOne(key: SourceKey, events: readonly SourceEvent[], policy: Policy) {
  let advanced = 0
  let folded: FoldedSource | null = null
  events.forEach((event, i) => {
    const before = events.slice(0, i)
    const isNew = (paymentId: string) =>
      !before.some((other) => other.subject === 'payment' && other.paymentId === paymentId)
    const next: FoldedSource | null = folded && advanceSource(saved(folded), event, policy, isNew)
    if (next !== null) advanced += 1
    folded = next ?? foldSource(key, [...before, event], policy)
    const whole = foldSource(key, [...before, event], policy)
    expect(folded.state).toEqual(whole.state)
  })
  return advanced
}

const PAYMENT_IDS = Array.from({ length: 30 }, (_, i) => `pay_${i}`)
const MINUTE = 60_000

/** Long enough for old payments to be forgotten, and come back. */
const longHistory: fc.Arbitrary<History> = fc
  .array(
    fc.tuple(
      fc.oneof(
        anyPaymentEvent(PAYMENT_IDS, ['sub_1']),
        anySubscriptionEvent([null, ...PAYMENT_IDS], ['sub_1']),
      ),
      fc.constantFrom(1, 90, 1440, 1441, 20_000),
    ),
    { minLength: 40, maxLength: 80 },
  )
  .map((steps) => {
    let at = 0
    const events = steps.map(([event, minutes]) => {
      at += minutes * MINUTE
      return { ...event, createdAt: START + at }
    })
    return {
      key: { kind: 'subscription', id: 'sub_1' },
      events: withOwnIds<History['events'][number]>(events),
    }
  })

const inTime = ({ key, events }: History) => ({
  key,
  events: [...events].sort((a, b) => a.createdAt - b.createdAt),
})

describe('taking in the newest event', () => {
  it.each([
    ['one-time payments', paymentHistory.map(inTime)],
    ['lawful subscriptions', subscriptionHistory.map(inTime)],
    ['any type at any time', unlawfulHistory.map(inTime)],
    ['any type at any time, in any order', unlawfulHistory],
  ] as const)('equals folding all events again: %s', (_name, histories) => {
    let advanced = 0
    fc.assert(
      fc.property(histories, policies, ({ key, events }, policy) => {
        advanced += foldOneByOne(key, events, policy)
      }),
      { numRuns: RUNS },
    )
    expect(advanced).toBeGreaterThan(RUNS / 4)
  })

  it('equals folding all events again: more payments than are remembered', () => {
    let advanced = 0
    fc.assert(
      fc.property(longHistory, policies, ({ key, events }, policy) => {
        advanced += foldOneByOne(key, events, policy)
      }),
      { numRuns: LONG_RUNS },
    )
    expect(advanced).toBeGreaterThan(LONG_RUNS)
  })
})
