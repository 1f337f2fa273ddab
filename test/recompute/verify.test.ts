import fc from 'fast-check'
import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import { refreshDue } from '../../src/ingest/settle.js'
import { undatedAct } from '../../src/people/acts.js'
import { finishErasures } from '../../src/people/remove-stored.js'
import type { Database } from '../../src/store/schema.js'
import { minute, once, sub } from '../entitlements/events.js'
import { policies } from '../entitlements/policies.js'
import { bodyOf, deliveryOf, grantOf } from '../ingest/wire.js'
import {
  deliveries,
  differencesIn,
  everything,
  NOW,
  REBUILD,
  replayOf,
  standing,
  storeUnder,
  VERIFY,
} from './recompute-store.js'

type Db = Kysely<Database>

const GRANT = grantOf(1)
const REFUND = deliveryOf(bodyOf(once('evt_refund', 'payment.refunded', 10)))

/** Two events of one subscription, which only the second one links to the payment. */
const LINKED = [
  once('evt_1', 'payment.authorized', 0),
  sub('evt_2', 'subscription.created', 0, { paymentId: 'pay_1' }),
].map((event) => deliveryOf(bodyOf(event)))

const difference = (kind: string, id: string) => ({ environment: 'live', kind, id })
const SOURCE = difference('source', 'payment pay_1')
const ACCESS = difference('entitlement', 'cus_1 pro_1')
const LINK = difference('link', 'pay_1')

const sources = (db: Db, alter: (text: string) => string, column: 'state' | 'history' = 'state') =>
  db
    .selectFrom('sources')
    .selectAll()
    .execute()
    .then((rows) =>
      Promise.all(
        rows.map((row) =>
          db
            .updateTable('sources')
            .set({ [column]: alter(row[column]) })
            .where('source_id', '=', row.source_id)
            .execute(),
        ),
      ),
    )
const history = (db: Db, alter: (text: string) => string) => sources(db, alter, 'history')
const update = <Table extends 'sources' | 'entitlements' | 'events' | 'payment_links'>(
  db: Db,
  table: Table,
  values: object,
) =>
  db
    .updateTable(table as 'events')
    .set(values)
    .execute()

it('finds nothing in what was taken in, whatever it was', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, async (told, policy) => {
      const store = await storeUnder(policy, told)
      expect(await differencesIn(store)).toEqual([])
      await store.close()
    }),
    { numRuns: 40 },
  )
})

describe('what is stored otherwise than its events say is named, and a rebuild mends it', () => {
  it.each<[string, (db: Db) => Promise<unknown>, object[]]>([
    ['a source', (db) => sources(db, (state) => state.replace('pro_1', 'pro_9')), [SOURCE]],
    ['a source that can’t be read', (db) => sources(db, () => 'garbage'), [SOURCE]],
    ['a source that is empty', (db) => sources(db, () => '{}'), [SOURCE]],
    ['a source of somebody else', (db) => update(db, 'sources', { customer_id: 'cus_9' }), [SOURCE]],
    ['a source of nobody', (db) => update(db, 'sources', { customer_id: null }), [SOURCE]],
    ['a source that is missing', (db) => db.deleteFrom('sources').execute(), [SOURCE]],
    [
      'a source without an event',
      (db) => update(db, 'sources', { source_id: 'pay_0' }),
      [SOURCE, difference('source', 'payment pay_0')],
    ],
    [
      'a history of another event',
      (db) => history(db, (text) => text.replace('evt_', 'evt_other_')),
      [SOURCE],
    ],
    ['a history of another number', (db) => history(db, (text) => text.replace('[[1,', '[[2,')), [SOURCE]],
    ['a history without an event', (db) => history(db, () => '[]'), [SOURCE]],
    ['a history that breaks off', (db) => history(db, (text) => text.slice(0, -1)), [SOURCE]],
    ['when access began', (db) => update(db, 'entitlements', { since: NOW - 1 }), [ACCESS]],
    ['how access is, unreadably', (db) => update(db, 'entitlements', { status: 'garbage' }), [ACCESS]],
    ['when access changes next', (db) => update(db, 'entitlements', { next_change_at: NOW + 1 }), [ACCESS]],
    ['when access ends', (db) => update(db, 'entitlements', { until: NOW + 1 }), [ACCESS]],
    [
      'access that is missing, and some that nothing gives',
      (db) => update(db, 'entitlements', { product_id: 'pro_9', active: 0, status: 'expired' }),
      [ACCESS, difference('entitlement', 'cus_1 pro_9')],
    ],
    [
      'what became of an event',
      (db) => update(db, 'events', { disposition: 'ignored' }),
      [difference('disposition', 'evt_1')],
    ],
  ])('%s', async (_what, damage, named) => {
    const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
    const right = await standing(store.db)
    await damage(store.db)
    expect(await differencesIn(store)).toEqual(named)
    await store.recompute(REBUILD)
    expect(await differencesIn(store)).toEqual([])
    expect(await standing(store.db)).toEqual(right)
  })

  it.each([
    ['payment.authorized', 'ignored', 'held'],
    ['checkout.initiated', 'held', 'ignored'],
    ['customer.updated', 'applied', 'ignored'],
    ['payout.paid', 'held', 'ignored'],
  ] as const)('an event without a source, %s, that is said to be %s', async (type, wrong, right) => {
    const sourceless = JSON.stringify({ id: 'evt_1', type, createdAt: '2026-01-01T00:00:00Z', data: {} })
    const store = await storeUnder(DOCUMENTED_POLICY, [deliveryOf(sourceless)])
    const dispositions = () => store.db.selectFrom('events').select('disposition').execute()
    await update(store.db, 'events', { disposition: wrong })
    expect(await differencesIn(store)).toEqual([difference('disposition', 'evt_1')])
    await store.recompute(REBUILD)
    expect(await dispositions()).toEqual([{ disposition: right }])
  })

  it.each<[string, (db: Db) => Promise<unknown>, object]>([
    ['a link that is gone', (db) => db.deleteFrom('payment_links').execute(), LINK],
    [
      'a link to another subscription',
      (db) => update(db, 'payment_links', { subscription_id: 'sub_9' }),
      LINK,
    ],
    ['a link that is older than its event', (db) => update(db, 'payment_links', { linked_at: 1 }), LINK],
    [
      'a link that is newer than any event',
      (db) => update(db, 'payment_links', { linked_at: NOW, linked_by: 'evt_9' }),
      LINK,
    ],
    [
      'an event with another source',
      (db) =>
        db
          .updateTable('events')
          .set({ source_kind: 'payment', source_id: 'pay_1' })
          .where('event_id', '=', 'evt_1')
          .execute(),
      difference('place', 'evt_1'),
    ],
  ])('%s, and so does a replay', async (_what, damage, named) => {
    for (const plan of [REBUILD, replayOf()]) {
      const store = await storeUnder(DOCUMENTED_POLICY, LINKED)
      const right = await standing(store.db)
      await damage(store.db)
      expect(await differencesIn(store)).toEqual([named])
      await store.recompute(plan)
      expect(await differencesIn(store)).toEqual([])
      expect(await standing(store.db)).toEqual(right)
    }
  })
})

it('takes for right what a daemon writes down meanwhile, as time goes on', async () => {
  const policy: Policy = { ...DOCUMENTED_POLICY, canceled: 'period_end' }
  const ofCycle = { expiresAt: minute(10) }
  let now = minute(5)
  const clock = () => now
  const told = [
    sub('evt_1', 'subscription.created', 1, ofCycle),
    sub('evt_2', 'subscription.canceled', 2, ofCycle),
  ].map((event) => deliveryOf(bodyOf(event)))
  const store = await storeUnder(policy, told, { clock })
  await update(store.db, 'events', { disposition: 'ignored' })
  const kinds = async (then: () => unknown) => {
    const onProgress = () => {
      now = minute(10)
      then()
    }
    return (await differencesIn(store, { onProgress })).map(({ kind }) => kind)
  }
  expect(await kinds(() => {})).toEqual(['disposition', 'disposition'])
  expect(await kinds(() => refreshDue(store.db, clock))).toEqual(['disposition', 'disposition'])
  expect(await store.db.selectFrom('entitlements').select('active').execute()).toEqual([{ active: 0 }])
})

it('names a source that can’t be read beside wrong access, also where its end has come meanwhile', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT, grantOf(2)])
  await store.db.updateTable('sources').set({ state: 'garbage' }).where('source_id', '=', 'pay_1').execute()
  await update(store.db, 'entitlements', { active: 0 })
  const ofFirst = store.db.updateTable('entitlements').where('customer_id', '=', 'cus_1')
  await ofFirst.set({ next_change_at: NOW }).execute()
  expect(await differencesIn(store)).toEqual([SOURCE, difference('entitlement', 'cus_2 pro_1')])
  await store.recompute(REBUILD)
  expect(await differencesIn(store)).toEqual([])
  const active = await store.db.selectFrom('entitlements').select('active').execute()
  expect(active).toEqual([{ active: 1 }, { active: 1 }])
})

it.each<[string, (db: Db) => Promise<unknown>]>([
  [
    'names only the first of its events',
    (db) => history(db, (text) => JSON.stringify(JSON.parse(text).slice(0, 1))),
  ],
  ['can’t be read', (db) => history(db, () => 'garbage')],
  ['is gone with it', (db) => db.deleteFrom('sources').execute()],
])('changes no access, not even for a moment, where a source’s history %s', async (_how, damage) => {
  const told: Delivery[] = [GRANT, ...[2, 3, 4, 5].map(grantOf), REFUND]
  const store = await storeUnder(DOCUMENTED_POLICY, told)
  const before = await everything(store.db)
  await damage(store.db)
  expect(await differencesIn(store)).toContainEqual(SOURCE)
  expect((await store.recompute(VERIFY)).access.all).toMatchObject({ gains: 0, losses: 0, otherwise: 0 })
  await store.recompute(REBUILD)
  expect(await everything(store.db)).toEqual(before)
})

it('keeps out an event of a source whose history can’t be read, until a rebuild has mended it', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
  await history(store.db, () => 'garbage')
  await expect(store.writeBatch([REFUND])).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('latchkey rebuild'),
  })
  await store.recompute(REBUILD)
  await store.writeBatch([REFUND])
  expect(await differencesIn(store)).toEqual([])
  const stored = await store.db.selectFrom('entitlements').select('status').execute()
  expect(stored).toEqual([{ status: 'refunded' }])
})

it('finds nothing once somebody was erased, nor after what comes of them later', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
  const { sources: before } = await standing(store.db)
  const act = { id: 'man_1', type: 'manual.erased', customerId: 'cus_1', actor: 'ada', reason: null } as const
  await store.writeBatch([{ environment: 'live', undated: undatedAct(act) }])
  await finishErasures(store.db, () => NOW)
  expect((await standing(store.db)).sources).toEqual(before)
  expect(await differencesIn(store)).toEqual([])
  await store.writeBatch([REFUND])
  expect(await differencesIn(store)).toEqual([])
})
