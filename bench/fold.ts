import { foldSource } from '../src/entitlements/fold-source.js'
import {
  extendHistory,
  type HistoryEvent,
  historyEvent,
  packHistory,
  unpackHistory,
} from '../src/entitlements/history.js'
import { DOCUMENTED_POLICY } from '../src/entitlements/policy.js'
import { normalise } from '../src/provider/normalise.js'
import { buildSampleEvent } from '../src/provider/sample-event.js'

/*
 * What the rules cost: a subscription with so many events takes in one more. Its history is unpacked, folded whole with
 * the new event, and packed again; beside what each of these costs alone.
 */

const CYCLE = ['payment.authorized', 'payment.succeeded', 'subscription.renewed'] as const
const MONTH_MS = 30 * 24 * 60 * 60 * 1000
const ROUNDS = 7
const KEY = { kind: 'subscription', id: 'sub_1' } as const

function historyOf(count: number): HistoryEvent[] {
  return Array.from({ length: count }, (_, i) => {
    const cycle = Math.floor(i / CYCLE.length)
    const { body } = buildSampleEvent({
      type: CYCLE[i % CYCLE.length] ?? CYCLE[0],
      eventId: idOf('evt', i),
      createdAt: cycle * MONTH_MS + (i % CYCLE.length) * 1000,
      environment: 'live',
      customerId: idOf('cus', 1),
      productId: idOf('pro', 1),
      paymentId: idOf('pay', cycle),
      subscriptionId: 'sub_1',
      rail: 'card',
    })
    const read = normalise(Buffer.from(body), { environment: 'live', receivedAt: Number.MAX_SAFE_INTEGER })
    const event = read.ok ? historyEvent(1_000_000 + i, read.event) : null
    if (event === null) throw new Error('The sample could not be read.')
    return event
  })
}

/** As long as the provider's own. */
function idOf(prefix: string, n: number): string {
  return `${prefix}_${String(n).padStart(24, 'x')}`
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

const rows = [1, 3, 12, 36, 100, 1_000].map((count) => {
  const events = historyOf(count + 1)
  const fresh = events.slice(-1)
  const stored = events.slice(0, -1)
  const history = packHistory(stored)
  const times = Math.ceil(50_000 / count)
  const fold = (): void => void foldSource(KEY, events, DOCUMENTED_POLICY)
  const takeIn = (): number => {
    const known = unpackHistory(history) ?? []
    foldSource(KEY, [...known, ...fresh], DOCUMENTED_POLICY)
    return Buffer.byteLength(extendHistory(history, known, fresh))
  }
  return {
    'events before': count,
    'bytes an event': history.length / count,
    'take in, µs': measure(takeIn, times),
    'fold, µs': measure(fold, times),
    'unpack, µs': measure(() => void unpackHistory(history), times),
    'pack all, µs': measure(() => void Buffer.byteLength(packHistory(events)), times),
  }
})
console.table(
  rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Math.round(value * 100) / 100])),
  ),
)
