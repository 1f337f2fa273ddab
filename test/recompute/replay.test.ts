import fc from 'fast-check'
import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { DifferenceSummary } from '../../src/recompute/report.js'
import type { RecomputePlan } from '../../src/recompute/run.js'
import type { Database } from '../../src/store/schema.js'
import { paymentEvent, subscriptionEvent } from '../entitlements/events.js'
import { policies } from '../entitlements/policies.js'
import { bodyOf, deliveryOf, grantOf } from '../ingest/wire.js'
import { type MisreadDelivery, misreadDeliveries, takeInMisread } from './older-readings.js'
import {
  differencesIn,
  everything,
  NOW,
  REBUILD,
  type RecomputeStore,
  replayAll,
  replayOf,
  standing,
  storeUnder,
} from './recompute-store.js'

it('ends where taking everything in with the program of today would have ended', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, async (misread, policy) => {
      const store = await storeUnder(policy)
      await takeInMisread(store, misread)
      await replayAll(store)
      await expectAsAnew(store, policy, misread)
    }),
    { numRuns: 50 },
  )
})

it('changes no row and no line of the change log where everything stands as today’s program has it', async () => {
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
      let asked = 0
      const interrupted = await first.recompute(replayOf(), { isStopping: () => asked++ === batches }).then(
        () => null,
        (error: { code: string }) => error.code,
      )
      if (interrupted !== null) expect(interrupted).toBe('replay_interrupted')
      if (last) await first.writeBatch([last.delivery])
      await first.close()

      const again = await storeUnder(policy, [], { file: first.file })
      await replayAll(again)
      const anew = await storeUnder(
        policy,
        [...early, ...(last ? [last] : [])].map(({ delivery }) => delivery),
      )
      expect(await standing(again.db)).toEqual(await standing(anew.db))
      await Promise.all([again.close(), anew.close()])
    }),
    { numRuns: 40 },
  )
})

it('loses nothing of what is taken in while it runs', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, fc.nat(), async (misread, policy, cut) => {
      const early = misread.slice(0, cut % (misread.length + 1))
      const late = misread.slice(early.length).map(({ delivery }) => delivery)
      const store = await storeUnder(policy)
      await takeInMisread(store, early)
      const written: Promise<unknown>[] = []
      await store.recompute(replayOf(), {
        onProgress: () => {
          const next = late.shift()
          if (next) written.push(store.writeBatch([next]))
        },
      })
      await Promise.all(written)
      for (const delivery of late) await store.writeBatch([delivery])
      await replayAll(store)
      await expectAsAnew(store, policy, misread)
    }),
    { numRuns: 40 },
  )
})

/** It ends as one that the program of today has taken all of it into. */
async function expectAsAnew(
  store: RecomputeStore,
  policy: Policy,
  misread: readonly MisreadDelivery[],
): Promise<void> {
  const anew = await storeUnder(
    policy,
    misread.map(({ delivery }) => delivery),
  )
  expect(await standing(store.db)).toEqual(await standing(anew.db))
  await Promise.all([store.close(), anew.close()])
}

/** A store with seven events of somebody each, of which a replay of everything has read the first four. */
async function interruptedStore() {
  const store = await storeUnder(DOCUMENTED_POLICY)
  for (let n = 1; n <= 7; n += 1) {
    await store.writeBatch([grantOf(n)])
  }
  let asked = 0
  const interrupted = store.recompute(replayOf(), { isStopping: () => asked++ === 2 })
  await expect(interrupted).rejects.toMatchObject({ code: 'replay_interrupted' })
  return store
}

it.each<[string, RecomputePlan, number]>([
  ['goes on where the same replay was interrupted', replayOf(), 4],
  ['begins anew where nothing is written', replayOf({}, { mode: 'compare' }), 0],
  ['begins anew where another filter was meant', replayOf({ endpoint: 'v3' }), 0],
  ['begins anew where an endpoint has moved since', replayOf({}, { endpoints: { v3: 'live' } }), 0],
])('%s', async (_, plan, from) => {
  const { recompute } = await interruptedStore()
  const reached: number[] = []
  const { counts } = await recompute(plan, { onProgress: (place) => reached.push(place) })
  expect(reached[0]).toBe(from)
  expect(reached.at(-1)).toBe(7)
  expect(counts.read).toBe(7)
})

it('counts each event once, however often it is interrupted', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, fc.array(fc.nat(5)), async (misread, policy, stops) => {
      const [first, other] = [await storeUnder(policy), await storeUnder(policy)]
      for (const store of [first, other]) await takeInMisread(store, misread)
      for (const turns of stops) {
        let asked = 0
        await first.recompute(replayOf(), { isStopping: () => asked++ === turns }).catch(() => {})
      }
      const { counts } = await first.recompute(replayOf())
      const { counts: atOnce } = await other.recompute(replayOf())
      // The last one may begin anew, where the one before has ended.
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
  const told = { type: 'payment.authorized', paymentId: 'pay_1', customerId: 'cus_1' } as const
  const older = deliveryOf(bodyOf(paymentEvent({ ...told, id: 'evt_1', subscriptionId: 'sub_1' })))
  const newer = deliveryOf(bodyOf(paymentEvent({ ...told, id: 'evt_2', subscriptionId: null })))
  const between = ['pay_2', 'pay_3'].map((paymentId) =>
    deliveryOf(bodyOf(paymentEvent({ ...told, id: `evt_of_${paymentId}`, paymentId }))),
  )
  const rightly = [...between, older].map((delivery) => ({ delivery, misreading: 'as today' }) as const)
  await takeInMisread(store, [{ delivery: newer, misreading: 'another subscription' }, ...rightly])
  let asked = 0
  const interrupted = store.recompute(replayOf(), { isStopping: () => asked++ === 2 })
  await expect(interrupted).rejects.toMatchObject({ code: 'replay_interrupted' })
  await store.recompute(replayOf({ type: 'payment.refunded' }))
  const anew = await storeUnder(DOCUMENTED_POLICY, [newer, ...between, older])
  expect(await standing(store.db)).toEqual(await standing(anew.db))
})

it('takes the other bodies that came under an id along, where today’s program reads another id', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY, [grantOf(1)])
  const paid = paymentEvent({ id: 'evt_2', type: 'payment.authorized', paymentId: 'pay_2' })
  const [first, other] = [paid, { ...paid, productId: 'pro_2' }].map((event) => deliveryOf(bodyOf(event)))
  for (const delivery of [first, other]) if (delivery) await store.writeBatch([delivery])
  const ids = async () => {
    const events = await store.db.selectFrom('events').select('event_id').orderBy('seq').execute()
    const conflicts = await store.db.selectFrom('event_conflicts').select('event_id').execute()
    return [...events, ...conflicts].map((row) => row.event_id)
  }
  const right = await ids()
  expect(right.slice(1)).toEqual(['evt_2', 'evt_2'])
  for (const table of ['events', 'event_conflicts'] as const) {
    await store.db
      .updateTable(table)
      .set({ event_id: 'evt_misread' })
      .where('event_id', '=', 'evt_2')
      .execute()
  }
  await store.recompute(replayOf())
  expect(await ids()).toEqual(right)
})

const LINKED = [
  paymentEvent({ id: 'evt_1', type: 'payment.authorized', paymentId: 'pay_1' }),
  subscriptionEvent({ id: 'evt_2', type: 'subscription.created', paymentId: 'pay_1' }),
]
const LINK = { environment: 'live', kind: 'link', id: 'pay_1' }
const PLACE = { environment: 'live', kind: 'place', id: 'evt_1' }

const DAMAGES: [string, readonly object[], (db: Kysely<Database>) => Promise<unknown>][] = [
  ['a link that is gone', [LINK], (db) => db.deleteFrom('payment_links').execute()],
  [
    'a link to another subscription',
    [LINK],
    (db) => db.updateTable('payment_links').set({ subscription_id: 'sub_9' }).execute(),
  ],
  [
    'a link that is older than its event',
    [LINK],
    (db) => db.updateTable('payment_links').set({ linked_at: 1 }).execute(),
  ],
  [
    'a link that is newer than any event',
    [LINK],
    (db) => db.updateTable('payment_links').set({ linked_at: NOW, linked_by: 'evt_9' }).execute(),
  ],
  [
    'an event with another source',
    [PLACE],
    (db) =>
      db
        .updateTable('events')
        .set({ source_kind: 'payment', source_id: 'pay_1' })
        .where('event_id', '=', 'evt_1')
        .execute(),
  ],
]

describe.each(DAMAGES)('%s', (_, named, damage) => {
  it.each([
    ['a replay', replayOf()],
    ['a rebuild', REBUILD],
  ])('is named by verifying, and mended by %s', async (_by, plan) => {
    const store = await storeUnder(DOCUMENTED_POLICY)
    for (const event of LINKED) await store.writeBatch([deliveryOf(bodyOf(event))])
    const right = await standing(store.db)
    await damage(store.db)
    expect(await differencesIn(store)).toEqual(named)
    await store.recompute(plan)
    expect(await differencesIn(store)).toEqual([])
    expect(await standing(store.db)).toEqual(right)
  })
})
