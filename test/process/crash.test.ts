import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type CustomerStory, customerStory, deliver, type SentEvent } from './load.js'
import { configuredFolder, entitlementsOf, kill, serve } from './served.js'
import { foldedAnew, foldedState, storedEvents } from './stored-state.js'

const STORIES: readonly CustomerStory[] = Array.from({ length: 120 }, (_, n) => customerStory(n))
const EVENTS: readonly SentEvent[] = STORIES.flatMap(({ events }) => events)

interface Moment {
  /** How many events must have been acknowledged. */
  readonly acknowledged: number
  /** How many milliseconds into what is under way then. */
  readonly later: number
}

const moment: fc.Arbitrary<Moment> = fc.record({
  acknowledged: fc.integer({ min: 1, max: 100 }),
  later: fc.integer({ min: 0, max: 12 }),
})

/** A few in every run; many by hand. */
const RUNS = Number(process.env.FAULT_ROUNDS ?? 2)

/** Two crashes on the way through the events, which come in an order of their own. */
const crashes = fc.record({
  order: fc.shuffledSubarray(
    EVENTS.map((_, i) => i),
    { minLength: EVENTS.length },
  ),
  moments: fc.tuple(moment, moment),
})

/** Delivers until the daemon is killed; answers with the ids of the events that it had acknowledged. */
async function crashUnder(folder: string, events: readonly SentEvent[], { acknowledged, later }: Moment) {
  const daemon = await serve(folder)
  const load = await deliver(daemon.url, events, {
    onAcknowledged: (count) => {
      if (count === acknowledged) setTimeout(() => daemon.signal('SIGKILL'), later)
    },
  })
  await kill(daemon)
  expect(load.refused).toEqual([])
  return load.acknowledged
}

it('loses nothing that it acknowledged, and leaves nothing half-done, killed at any moment', async () => {
  const property = fc.asyncProperty(crashes, async ({ order, moments }) => {
    const folder = configuredFolder()
    const events = order.map((i) => EVENTS[i] as SentEvent)
    const acknowledged: string[] = []
    for (const at of moments) {
      const left = events.filter(({ id }) => !acknowledged.includes(id))
      acknowledged.push(...(await crashUnder(folder, left, at)))
    }

    const daemon = await serve(folder)
    const stored = await storedEvents(folder)
    const ids = stored.map(({ event_id }) => event_id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toEqual(expect.arrayContaining(acknowledged))
    expect(await foldedState(folder)).toEqual(await foldedAnew(folder))

    const again = await deliver(daemon.url, events)
    expect([...again.acknowledged].sort()).toEqual(EVENTS.map(({ id }) => id).sort())
    expect(again.dispositions.filter((disposition) => disposition === 'duplicate')).toHaveLength(ids.length)
    expect(await storedEvents(folder)).toHaveLength(EVENTS.length)
    for (const { customerId, outcome } of STORIES) {
      expect(await entitlementsOf(daemon, customerId)).toEqual([outcome])
    }
    await kill(daemon)
  })
  // Fast-check tells seed and counterexample on failure; a smaller one would need the same crash again.
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
})
