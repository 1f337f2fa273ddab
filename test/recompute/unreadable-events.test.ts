import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { undatedAct } from '../../src/people/acts.js'
import { readAccess } from '../../src/store/access.js'
import { readExplanation } from '../../src/store/account.js'
import { readEvent } from '../../src/store/event-questions.js'
import { loadManualEvent } from '../../src/store/events.js'
import { pay, sub } from '../entitlements/events.js'
import { bodyOf, deliveryOf } from '../ingest/wire.js'
import { alterBody } from '../setup/alter-body.js'
import {
  interruptedAt,
  NOW,
  REBUILD,
  type RecomputeStore,
  replayOf,
  standing,
  storeUnder,
  VERIFY,
} from './recompute-store.js'

/** One long story, so that its events do not fit into one batch, and somebody else's. */
const EVENTS = [
  sub('evt_1', 'subscription.created', 1),
  pay('evt_2', 'payment.authorized', 'pay_2', 2, { customerId: 'cus_2', subscriptionId: null }),
  sub('evt_3', 'subscription.renewed', 3),
  sub('evt_4', 'subscription.renewed', 4),
  sub('evt_5', 'subscription.renewed', 5),
  sub('evt_6', 'subscription.past_due', 6),
]

const filled = (): Promise<RecomputeStore> =>
  storeUnder(
    DOCUMENTED_POLICY,
    EVENTS.map((event) => deliveryOf(bodyOf(event))),
  )

async function damage({ db }: RecomputeStore, eventId: string, form = 'not json'): Promise<void> {
  await db.updateTable('events').set({ normalized: form }).where('event_id', '=', eventId).execute()
}

const unreadable = (eventId: string) => ({
  code: 'store_unavailable',
  message: expect.stringMatching(
    new RegExp(`^The normalised form of the event ${eventId} is damaged.*latchkey replay.*restore`),
  ),
})

const ODD_TIME = '{"id":"evt_5","subject":"subscription","createdAt":"x"}'
const ODD_ID = '{"id":"evt_5","subject":"subscription","createdAt":1,"customerId":["cus_1"]}'

describe.each(['not json', '{}', 'null', '1,2', ODD_TIME, ODD_ID])(
  'an event that is stored as having been read as %s',
  (form) => {
    it('stops a verification, which says which it is', async () => {
      const store = await filled()
      await damage(store, 'evt_5', form)
      await expect(store.recompute(VERIFY)).rejects.toMatchObject(unreadable('evt_5'))
    })

    it('is mended by a rebuild, and by a replay, in whichever batch it comes', async () => {
      for (const { id } of EVENTS) {
        const store = await filled()
        const before = await standing(store.db)
        await damage(store, id, form)
        await store.recompute(REBUILD)
        expect(await standing(store.db)).toEqual(before)
        await damage(store, id, form)
        expect((await store.recompute(replayOf())).counts).toMatchObject({
          read: 6,
          changed: 1,
          recovered: 0,
        })
        expect(await standing(store.db)).toEqual(before)
        await store.close()
      }
    })
  },
)

it('events of one source that can’t be read are all mended by a replay, also one that was interrupted', async () => {
  const store = await filled()
  const before = await standing(store.db)
  for (const { id } of EVENTS) await damage(store, id)
  expect(await interruptedAt(2, store, replayOf())).toBe('replay_interrupted')
  expect((await store.recompute(replayOf())).counts).toMatchObject({ read: 6, changed: 6 })
  expect(await standing(store.db)).toEqual(before)
})

it.each([REBUILD, replayOf()])(
  'an event that can’t be read, and whose body is gone, stops what works it out again',
  async (plan) => {
    const store = await filled()
    await damage(store, 'evt_5')
    await alterBody(store.db, 'evt_5', null)
    await store.db
      .updateTable('events')
      .set({ body_removed: 'expired', body_removed_at: NOW })
      .where('event_id', '=', 'evt_5')
      .execute()
    await expect(store.recompute(plan)).rejects.toMatchObject(unreadable('evt_5'))
  },
)

it('an event that can’t be read is named by whatever else reads it', async () => {
  const store = await filled()
  const { db } = store
  await damage(store, 'evt_2')
  const question = { environment: 'live', customerId: 'cus_2', productId: 'pro_a', at: null } as const
  for (const read of [
    () => readExplanation(db, () => NOW, question),
    () => readEvent(db, { environment: 'live', eventId: 'evt_2' }),
    () => loadManualEvent(db, 'live', 'evt_2'),
    () => store.recompute({ ...REBUILD, mode: 'compare', policy: DOCUMENTED_POLICY }),
  ]) {
    await expect(read()).rejects.toMatchObject(unreadable('evt_2'))
  }
})

it('an event that can’t be read keeps none out that comes later to its source', async () => {
  const store = await filled()
  await damage(store, 'evt_2')
  const late = pay('evt_7', 'payment.refunded', 'pay_2', 3, { customerId: 'cus_2', subscriptionId: null })
  await store.writeBatch([deliveryOf(bodyOf(late))])
  const question = { environment: 'live', customerId: 'cus_2', at: null } as const
  expect(await readAccess(store.db, () => NOW, question)).toMatchObject({
    entitlements: [{ status: 'refunded' }],
  })
})

it('something done by hand that can’t be read is named, also where it belongs to no source', async () => {
  const store = await filled()
  const act = {
    id: 'man_1',
    type: 'manual.blocked',
    customerId: 'cus_2',
    actor: 'ops',
    reason: null,
  } as const
  await store.writeBatch([{ environment: 'live', undated: undatedAct(act) }])
  await damage(store, 'man_1')
  await expect(store.recompute(VERIFY)).rejects.toMatchObject(unreadable('man_1'))
  const question = { environment: 'live', customerId: 'cus_2', at: null } as const
  await expect(readAccess(store.db, () => NOW, question)).rejects.toMatchObject(unreadable('man_1'))
  await expect(store.recompute(REBUILD)).rejects.toMatchObject(unreadable('man_1'))
})
