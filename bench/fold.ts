import { advanceSource, type FoldedSource, foldSource } from '../src/entitlements/fold-source.js'
import { DOCUMENTED_POLICY } from '../src/entitlements/policy.js'
import type { SourceEvent } from '../src/entitlements/reading.js'
import type { NormalizedEvent } from '../src/provider/event.js'
import { normalise } from '../src/provider/normalise.js'
import { buildSampleEvent } from '../src/provider/sample-event.js'

/*
 * What the rules cost: a subscription with many events takes in one more, from its saved memory and by folding
 * all of them again, beside what reading the stored events from JSON costs alone.
 */

const CYCLE = ['payment.authorized', 'payment.succeeded', 'subscription.renewed'] as const
const MONTH_MS = 30 * 24 * 60 * 60 * 1000
const ROUNDS = 5
const KEY = { kind: 'subscription', id: 'sub_1' } as const
/** The newest event's payment has no event yet. */
const isNew = (): boolean => true

function sourceEvents(count: number): SourceEvent[] {
  return Array.from({ length: count }, (_, i) => {
    const cycle = Math.floor(i / CYCLE.length)
    const { body } = buildSampleEvent({
      type: CYCLE[i % CYCLE.length] ?? CYCLE[0],
      eventId: `evt_${i}`,
      createdAt: cycle * MONTH_MS + (i % CYCLE.length) * 1000,
      environment: 'live',
      customerId: 'cus_1',
      productId: 'pro_1',
      paymentId: `pay_${cycle}`,
      subscriptionId: 'sub_1',
      rail: 'card',
    })
    const read = normalise(Buffer.from(body), { environment: 'live', receivedAt: Number.MAX_SAFE_INTEGER })
    if (!read.ok) throw new Error(`The sample could not be read: ${read.reason}`)
    return read.event as SourceEvent
  })
}

/** The median of several rounds, in microseconds. */
function measure(work: () => void, times: number): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const startedAt = performance.now()
    for (let i = 0; i < times; i += 1) work()
    return ((performance.now() - startedAt) * 1000) / times
  })
  return rounds.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN
}

const rows = [10, 100, 1_000, 10_000].map((count) => {
  // The newest one begins a cycle: a payment that nothing knows yet.
  const events = sourceEvents(Math.floor(count / CYCLE.length) * CYCLE.length + 1)
  const newest = events.pop() as SourceEvent
  const folded = foldSource(KEY, events, DOCUMENTED_POLICY)
  const saved = JSON.stringify(folded)
  const stored = events.map((event: NormalizedEvent) => JSON.stringify(event))
  const advance = (from: FoldedSource): FoldedSource => {
    const advanced = advanceSource(from, newest, DOCUMENTED_POLICY, isNew)
    if (advanced === null) throw new Error('It folded all events.')
    return advanced
  }
  const parse = (): void => {
    for (const text of stored) JSON.parse(text)
  }
  const whole = (): void => void foldSource(KEY, [...events, newest], DOCUMENTED_POLICY)
  return {
    events: events.length,
    'saved bytes': saved.length,
    'newest, µs': measure(() => void advance(folded), 2_000),
    'newest with JSON, µs': measure(() => JSON.stringify(advance(JSON.parse(saved) as FoldedSource)), 2_000),
    'whole, µs': measure(whole, Math.max(1, Math.floor(20_000 / count))),
    'parse only, µs': measure(parse, Math.max(1, Math.floor(20_000 / count))),
  }
})
console.table(
  rows.map((row) => ({
    ...Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Math.round(value * 10) / 10])),
    'whole / parse': Math.round((row['whole, µs'] / row['parse only, µs']) * 10) / 10,
    'whole / newest': Math.round(row['whole, µs'] / row['newest, µs']),
  })),
)
