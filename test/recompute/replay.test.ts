import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import type { DifferenceSummary } from '../../src/recompute/report.js'
import type { RecomputePlan } from '../../src/recompute/run.js'
import { paymentEvent } from '../entitlements/events.js'
import { policies } from '../entitlements/policies.js'
import { bodyOf, deliveryOf, grantOf } from '../ingest/wire.js'
import { type MisreadDelivery, misreadDeliveries, takeInMisread } from './older-readings.js'
import {
  everything,
  expectAsAnew,
  interruptedAt,
  replayAll,
  replayOf,
  storeUnder,
} from './recompute-store.js'

const deliveriesIn = (misread: readonly MisreadDelivery[]) => misread.map(({ delivery }) => delivery)

it('ends where taking everything in with the program of today would have ended', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, async (misread, policy) => {
      const store = await storeUnder(policy)
      await takeInMisread(store, misread)
      await replayAll(store)
      await expectAsAnew(store, policy, deliveriesIn(misread))
    }),
    { numRuns: 50 },
  )
})

it('changes no row and no line of the change log where all is as today’s program reads it', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, async (misread, policy) => {
      const store = await storeUnder(policy)
      await takeInMisread(store, misread)
      await replayAll(store)
      const replayed = await everything(store.db)
      const { counts, access } = await store.recompute(replayOf())
      expect(counts).toMatchObject({ changed: 0, recovered: 0 })
      expect(access.all).toEqual({ gains: 0, losses: 0, otherwise: 0, sample: [] })
      await replayAll(store)
      expect(await everything(store.db)).toEqual(replayed)
      await store.close()
    }),
    { numRuns: 25 },
  )
})

it('goes on after an interruption at any batch, whatever is taken in between', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, fc.nat(13), async (misread, policy, batches) => {
      const [last, ...early] = misread
      const first = await storeUnder(policy)
      await takeInMisread(first, early)
      const interrupted = await interruptedAt(batches, first, replayOf())
      if (interrupted !== null) expect(interrupted).toBe('replay_interrupted')
      if (last) await first.writeBatch([last.delivery])
      await first.close()

      const again = await storeUnder(policy, [], { file: first.file })
      await replayAll(again)
      await expectAsAnew(again, policy, deliveriesIn([...early, ...(last ? [last] : [])]))
    }),
    { numRuns: 40 },
  )
})

it('loses nothing of what is taken in while it runs', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, fc.nat(), async (misread, policy, cut) => {
      const early = misread.slice(0, cut % (misread.length + 1))
      const late = deliveriesIn(misread.slice(early.length))
      const store = await storeUnder(policy)
      await takeInMisread(store, early)
      const written: Promise<unknown>[] = []
      const onProgress = () => {
        const next = late.shift()
        if (next) written.push(store.writeBatch([next]))
      }
      await store.recompute(replayOf(), { onProgress })
      await Promise.all(written)
      for (const delivery of late) await store.writeBatch([delivery])
      await replayAll(store)
      await expectAsAnew(store, policy, deliveriesIn(misread))
    }),
    { numRuns: 40 },
  )
})

it.each<[string, RecomputePlan, number]>([
  ['goes on where the same replay was interrupted', replayOf(), 4],
  ['begins again where nothing is written', replayOf({}, { mode: 'compare' }), 0],
  ['begins again where another filter was meant', replayOf({ endpoint: 'v3' }), 0],
  ['begins again where an endpoint has moved since', replayOf({}, { endpoints: { v3: 'live' } }), 0],
])('%s', async (_, plan, from) => {
  const store = await storeUnder(DOCUMENTED_POLICY, [1, 2, 3, 4, 5, 6, 7].map(grantOf))
  expect(await interruptedAt(2, store, replayOf())).toBe('replay_interrupted')
  const reached: number[] = []
  const { counts } = await store.recompute(plan, { onProgress: (place) => reached.push(place) })
  expect([reached[0], reached.at(-1), counts.read]).toEqual([from, 7, 7])
})

it('counts each event once, however often it is interrupted', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, fc.array(fc.nat(5)), async (misread, policy, stops) => {
      const [first, other] = [await storeUnder(policy), await storeUnder(policy)]
      for (const store of [first, other]) await takeInMisread(store, misread)
      for (const turns of stops) await interruptedAt(turns, first, replayOf())
      const { counts } = await first.recompute(replayOf())
      const { counts: atOnce } = await other.recompute(replayOf())
      // The last one may begin again, where the one before has ended.
      if (counts.changed > 0) expect(counts).toEqual(atOnce)
      await Promise.all([first.close(), other.close()])
    }),
    { numRuns: 25 },
  )
})

it('tells on trial just what it then does, and changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, async (misread, policy) => {
      const store = await storeUnder(policy)
      await takeInMisread(store, misread)
      const untouched = await everything(store.db)
      const trial = await store.recompute(replayOf({}, { mode: 'compare', sampleSize: 1_000 }))
      expect(await everything(store.db)).toEqual(untouched)
      const done = await store.recompute(replayOf({}, { sampleSize: 1_000 }))
      expect(inAnyOrder(trial.access.all)).toEqual(inAnyOrder(done.access.all))
      expect(trial.counts).toEqual(done.counts)
      await store.close()
    }),
    { numRuns: 50 },
  )
})

/**
 * Without the beginnings of access: one that moves alone is no change of its own, so that where a customer is settled
 * twice the log has it as it was in between.
 */
function inAnyOrder({ sample, ...counts }: DifferenceSummary) {
  const texts = sample.map(({ before, after, ...one }) =>
    JSON.stringify({ ...one, before: { ...before, since: null }, after: { ...after, since: null } }),
  )
  return { ...counts, sample: texts.sort() }
}

it('settles what an interrupted replay had taken back, though the next one means other events', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY)
  const grant = (id: string, paymentId: string, subscriptionId: string | null = null) =>
    deliveryOf(bodyOf(paymentEvent({ type: 'payment.authorized', id, paymentId, subscriptionId })))
  const newer = grant('evt_2', 'pay_1')
  const rest = [grant('evt_3', 'pay_2'), grant('evt_4', 'pay_3'), grant('evt_1', 'pay_1', 'sub_1')]
  await takeInMisread(store, [
    { delivery: newer, misreading: 'another subscription' },
    ...rest.map((delivery) => ({ delivery, misreading: 'as today' }) as const),
  ])
  expect(await interruptedAt(2, store, replayOf())).toBe('replay_interrupted')
  await store.recompute(replayOf({ type: 'payment.refunded' }))
  await expectAsAnew(store, DOCUMENTED_POLICY, [newer, ...rest])
})
