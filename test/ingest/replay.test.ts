import fc from 'fast-check'
import type { Kysely } from 'kysely'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { ReplayOrder } from '../../src/ingest/replay.js'
import { type StateDifference, stateDifferences } from '../../src/ingest/verify-state.js'
import type { Database } from '../../src/store/schema.js'
import { paymentEvent, subscriptionEvent } from '../entitlements/events.js'
import { policies } from '../entitlements/policies.js'
import { type MisreadDelivery, misreadDeliveries, takeInMisread } from './older-readings.js'
import { NOW, storeUnder } from './rebuild-store.js'
import { allOf, orderOf, type ReplayStore, replayAll, replayStore, standing } from './replay-store.js'
import { bodyOf, deliveryOf } from './wire.js'

it('ends where taking everything in with the program of today would have ended', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, async (misread, policy) => {
      const store = await replayStore(policy)
      await takeInMisread(store, misread)
      await replayAll(store.replay)
      await expectAsAnew(store, policy, misread)
    }),
    { numRuns: 50 },
  )
})

it('changes no row and no line of the change log where everything stands as today’s program has it', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, async (misread, policy) => {
      const store = await replayStore(policy)
      await takeInMisread(store, misread)
      await replayAll(store.replay)
      const replayed = await allOf(store.db)
      const { counts, access } = await store.replay(orderOf())
      expect(counts).toMatchObject({ changed: 0, recovered: 0 })
      expect(access).toEqual({ gains: 0, losses: 0, otherwise: 0, sample: [] })
      await replayAll(store.replay)
      expect(await allOf(store.db)).toEqual(replayed)
      await store.close()
    }),
    { numRuns: 25 },
  )
})

it('goes on after an interruption at any batch, whatever is taken in between', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, fc.nat(12), async (misread, policy, batches) => {
      const [last, ...early] = misread
      const first = await replayStore(policy)
      await takeInMisread(first, early)
      let asked = 0
      const interrupted = await first.replay(orderOf(), { isStopping: () => asked++ === batches }).then(
        () => null,
        (error: { code: string }) => error.code,
      )
      if (interrupted !== null) expect(interrupted).toBe('replay_interrupted')
      if (last) await first.writeBatch([last.delivery])
      await first.close()

      const again = await replayStore(policy, { file: first.file })
      await replayAll(again.replay)
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
      const store = await replayStore(policy)
      await takeInMisread(store, early)
      const written: Promise<unknown>[] = []
      await store.replay(orderOf(), {
        onProgress: () => {
          const next = late.shift()
          if (next) written.push(store.writeBatch([next]))
        },
      })
      await Promise.all(written)
      for (const delivery of late) await store.writeBatch([delivery])
      await replayAll(store.replay)
      await expectAsAnew(store, policy, misread)
    }),
    { numRuns: 40 },
  )
})

/** It ends as one that the program of today has taken all of it into. */
async function expectAsAnew(
  store: ReplayStore,
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

/** A store with seven events, of which a replay of everything has read the first three. */
async function interruptedStore() {
  const store = await replayStore(DOCUMENTED_POLICY)
  for (let n = 1; n <= 7; n += 1) {
    const body = bodyOf(paymentEvent({ id: `evt_${n}`, type: 'payment.authorized', paymentId: `pay_${n}` }))
    await store.writeBatch([deliveryOf(body)])
  }
  let asked = 0
  const interrupted = store.replay(orderOf(), { isStopping: () => asked++ === 1 })
  await expect(interrupted).rejects.toMatchObject({ code: 'replay_interrupted' })
  return store
}

it.each<[string, ReplayOrder, number]>([
  ['goes on where the same replay was interrupted', orderOf(), 3],
  ['begins anew where it is told to', orderOf({}, { isAnew: true }), 0],
  ['begins anew where another filter was meant', orderOf({ endpoint: 'v3' }), 0],
  ['begins anew where an endpoint has moved since', orderOf({}, { endpoints: { v3: 'live' } }), 0],
])('%s', async (_, order, from) => {
  const { replay } = await interruptedStore()
  const reached: number[] = []
  const { counts } = await replay(order, { onProgress: (place) => reached.push(place) })
  expect(reached[0]).toBe(from)
  expect(reached.at(-1)).toBe(7)
  expect(counts.read).toBe(7)
})

it('settles what an interrupted replay had taken back, though the next one means other events', async () => {
  const store = await replayStore(DOCUMENTED_POLICY)
  const told = { type: 'payment.authorized', paymentId: 'pay_1', customerId: 'cus_1' } as const
  const older = deliveryOf(bodyOf(paymentEvent({ ...told, id: 'evt_1', subscriptionId: 'sub_1' })))
  const newer = deliveryOf(bodyOf(paymentEvent({ ...told, id: 'evt_2', subscriptionId: null })))
  const between = ['pay_2', 'pay_3'].map((paymentId) =>
    deliveryOf(bodyOf(paymentEvent({ ...told, id: `evt_of_${paymentId}`, paymentId }))),
  )
  const rightly = [...between, older].map((delivery) => ({ delivery, misreading: 'as today' }) as const)
  await takeInMisread(store, [{ delivery: newer, misreading: 'another subscription' }, ...rightly])
  let asked = 0
  const interrupted = store.replay(orderOf(), { isStopping: () => asked++ === 1 })
  await expect(interrupted).rejects.toMatchObject({ code: 'replay_interrupted' })
  await store.replay(orderOf({ type: 'payment.refunded' }))
  const anew = await storeUnder(DOCUMENTED_POLICY, [newer, ...between, older])
  expect(await standing(store.db)).toEqual(await standing(anew.db))
})

const LINKED = [
  paymentEvent({ id: 'evt_1', type: 'payment.authorized', paymentId: 'pay_1' }),
  subscriptionEvent({ id: 'evt_2', type: 'subscription.created', paymentId: 'pay_1' }),
]
const LINK = { environment: 'live', kind: 'link', id: 'pay_1' }
const PLACE = { environment: 'live', kind: 'place', id: 'evt_1' }

it.each<[string, readonly object[], (db: Kysely<Database>) => Promise<unknown>]>([
  ['a link that is gone', [LINK, PLACE], (db) => db.deleteFrom('payment_links').execute()],
  [
    'a link to another subscription',
    [LINK, PLACE],
    (db) => db.updateTable('payment_links').set({ subscription_id: 'sub_9' }).execute(),
  ],
  [
    'a link that is older than its event',
    [LINK],
    (db) => db.updateTable('payment_links').set({ linked_at: 1 }).execute(),
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
])('mends %s, which verifying names', async (_, named, damage) => {
  const store = await replayStore(DOCUMENTED_POLICY)
  for (const event of LINKED) await store.writeBatch([deliveryOf(bodyOf(event))])
  const right = await standing(store.db)
  await damage(store.db)
  const found = await verified(store.db)
  expect(found).toEqual(expect.arrayContaining([...named]))
  await store.replay(orderOf())
  await store.rebuild(DOCUMENTED_POLICY)
  expect(await verified(store.db)).toEqual([])
  expect(await standing(store.db)).toEqual(right)
})

async function verified(db: Kysely<Database>): Promise<readonly StateDifference[]> {
  const found: StateDifference[] = []
  for await (const difference of stateDifferences(db, DOCUMENTED_POLICY, () => NOW)) found.push(difference)
  return found
}
