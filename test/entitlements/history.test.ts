import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { foldSource } from '../../src/entitlements/fold-source.js'
import {
  extendHistory,
  type HistoryEvent,
  historyEvent,
  packHistory,
  unpackHistory,
} from '../../src/entitlements/history.js'
import type { NormalizedEvent } from '../../src/provider/event.js'
import { isUsableId } from '../../src/provider/ids.js'
import { byHand, customerEvent, minute, subscriptionEvent } from './events.js'
import { type History, paymentHistory, subscriptionHistory, unlawfulHistory } from './histories.js'
import { policies } from './policies.js'
import { anyPaymentEvent, anySubscriptionEvent } from './unlawful.js'

const RUNS = Number(process.env.PROPERTY_RUNS ?? 1_000)

const oddIds = fc.oneof(
  fc.constantFrom('=', '/', '"', '\\t', '1', 'sc', ' ', '\u2028', '😀', 'null', 'é'.normalize('NFD')),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter(isUsableId),
)

/** The normaliser lets through plain text alone; an import may bring any. */
const oddStatus = fc.oneof(
  fc.constantFrom('', '\t', '\n', '\u0001', '"', '"half', '\ud800', 'past_due', 'PAUSED'),
  fc.string({ unit: 'binary', maxLength: 40 }),
)

/** Few instants and few numbers, and those that are not like the others. */
const instants = fc.oneof(fc.constantFrom(0, -1, Number.MAX_SAFE_INTEGER), fc.maxSafeInteger())

const anyEvent: fc.Arbitrary<NormalizedEvent> = fc
  .tuple(
    fc.oneof<fc.Arbitrary<NormalizedEvent>[]>(
      anyPaymentEvent(['pay_1', null], [null]),
      anySubscriptionEvent(['pay_1', null], ['sub_1']),
      fc.constantFrom(byHand('manual.granted', 1, { until: 2 }), byHand('manual.revoked', 3)),
    ),
    fc.record(
      { id: oddIds, customerId: oddIds, productId: oddIds, paymentId: oddIds, createdAt: instants },
      { requiredKeys: [] },
    ),
    fc.record({ status: oddStatus, expiresAt: instants }, { requiredKeys: [] }),
  )
  .map(([event, odd, own]) => {
    const { paymentId: _, ...common } = odd
    if (event.subject === 'subscription') return { ...event, ...odd, ...own }
    return event.subject === 'payment' ? { ...event, ...odd } : { ...event, ...common }
  })

const kept = (events: readonly NormalizedEvent[]): HistoryEvent[] =>
  events.flatMap((event, i) => historyEvent(i + 1, event) ?? [])

describe('a source’s history', () => {
  it('comes back as it was packed, whatever the ids are', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 12 }), (told) => {
        const events = kept(told)
        expect(events).toHaveLength(told.length)
        expect(unpackHistory(packHistory(events))).toEqual(events)
      }),
      { numRuns: RUNS },
    )
  })

  it('is the same text, packed as a whole or as its events come', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 8 }), fc.nat(8), (told, count) => {
        const events = kept(told)
        const [stored, added] = [events.slice(0, count), events.slice(count)]
        expect(extendHistory(packHistory(stored), stored, added)).toBe(packHistory(events))
      }),
      { numRuns: RUNS },
    )
  })

  it.each<[string, fc.Arbitrary<History>]>([
    ['one-time payments', paymentHistory],
    ['lawful subscriptions', subscriptionHistory],
    ['any type at any time', unlawfulHistory],
  ])('holds all that the rules read: %s', (_name, histories) => {
    fc.assert(
      fc.property(histories, policies, ({ key, events }, policy) => {
        const history = unpackHistory(packHistory(kept(events))) ?? []
        expect(foldSource(key, history, policy)).toEqual(foldSource(key, events, policy))
      }),
      { numRuns: RUNS },
    )
  })

  it('holds nothing of what no source is folded from', () => {
    const others = [customerEvent({ type: 'customer.deleted' }), byHand('manual.blocked', 1)]
    expect(kept(others)).toEqual([])
  })

  it('reads fields that came to the rules later as null', () => {
    const events = kept([subscriptionEvent({ id: 'evt_1', createdAt: minute(0), status: 'active' })])
    const earlier = `[[1,"evt_1","sc",${minute(0)},"cus_1","pro_a",null,"active"]]`
    expect(packHistory(events)).toBe(earlier)
    expect(unpackHistory(earlier)).toEqual(events)
  })

  it.each([
    ['nothing', ''],
    ['no list', '{}'],
    ['a list that breaks off', '[[1,"evt_1","ps"'],
    ['an event that breaks off', '[[1,"evt_1","ps"]]'],
    ['no event', '[1]'],
    ['a type that nobody sends', '[[1,"evt_1","zz",0]]'],
    ['no number', '[["x","evt_1","ps",0]]'],
    ['a rail that nothing proves', '[[1,"evt_1","ps",0,null,null,"pay_1",9]]'],
    ['a grant to nobody', '[[1,"man_1","mg",0,null,"pro_1"]]'],
  ])('can’t be read from %s', (_what, text) => {
    expect(unpackHistory(text)).toBeNull()
  })
})
