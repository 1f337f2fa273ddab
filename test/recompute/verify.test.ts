import fc from 'fast-check'
import type { Kysely } from 'kysely'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import { createRefreshDue } from '../../src/ingest/settle.js'
import { undatedAct } from '../../src/people/acts.js'
import { finishErasures } from '../../src/people/remove-stored.js'
import type { Database } from '../../src/store/schema.js'
import { readHistory } from '../../src/store/sources.js'
import { minute, paymentEvent, subscriptionEvent } from '../entitlements/events.js'
import { policies } from '../entitlements/policies.js'
import { bodyOf, deliveryOf, grantOf } from '../ingest/wire.js'
import { deliveries } from './histories.js'
import { differencesIn, everything, NOW, REBUILD, storeUnder, VERIFY } from './recompute-store.js'

const GRANT = grantOf(1)
const OTHER_GRANT = grantOf(2)

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

it('names a source that stands otherwise, and a rebuild mends it', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
  const { state } = await store.db.selectFrom('sources').select('state').executeTakeFirstOrThrow()
  await store.db
    .updateTable('sources')
    .set({ state: state.replace('pro_1', 'pro_9') })
    .execute()
  expect(await differencesIn(store)).toEqual([{ environment: 'live', kind: 'source', id: 'payment pay_1' }])
  await store.recompute(REBUILD)
  expect(await differencesIn(store)).toEqual([])
})

it.each([
  ['somebody else', 'cus_9'],
  ['nobody', null],
])('names a source that is written down as of %s, and a rebuild mends it', async (_whose, customer) => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
  await store.db.updateTable('sources').set({ customer_id: customer }).execute()
  expect(await differencesIn(store)).toEqual([{ environment: 'live', kind: 'source', id: 'payment pay_1' }])
  expect((await store.recompute(REBUILD)).access.all).toMatchObject({ gains: 0, losses: 0, otherwise: 0 })
  expect(await differencesIn(store)).toEqual([])
  const { customer_id: whose } = await store.db
    .selectFrom('sources')
    .select('customer_id')
    .executeTakeFirstOrThrow()
  expect(whose).toBe('cus_1')
})

it.each([{ since: NOW - 1 }, { next_change_at: NOW + 1 }, { until: NOW + 1 }])(
  'names access that is written down with %o, and a rebuild mends it',
  async (otherwise) => {
    const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
    const stored = () => store.db.selectFrom('entitlements').selectAll().execute()
    const right = await stored()
    await store.db.updateTable('entitlements').set(otherwise).execute()
    expect(await differencesIn(store)).toEqual([
      { environment: 'live', kind: 'entitlement', id: 'cus_1 pro_1' },
    ])
    await store.recompute(REBUILD)
    expect(await stored()).toEqual(right)
  },
)

it('names access that is not written down, or that nothing gives, and a rebuild mends it', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
  await store.db
    .updateTable('entitlements')
    .set({ product_id: 'pro_9', active: 0, status: 'expired' })
    .execute()
  expect(await differencesIn(store)).toEqual([
    { environment: 'live', kind: 'entitlement', id: 'cus_1 pro_1' },
    { environment: 'live', kind: 'entitlement', id: 'cus_1 pro_9' },
  ])
  await store.recompute(REBUILD)
  expect(await differencesIn(store)).toEqual([])
})

it.each([
  ['payment.authorized', 'ignored', 'held'],
  ['payment.refunded', 'applied', 'held'],
  ['checkout.initiated', 'held', 'ignored'],
  ['customer.updated', 'applied', 'ignored'],
  ['payout.paid', 'held', 'ignored'],
] as const)(
  'names an event without a source, %s, that is said to be %s, and a rebuild mends it',
  async (type, wrong, right) => {
    const sourceless = JSON.stringify({ id: 'evt_1', type, createdAt: '2026-01-01T00:00:00Z', data: {} })
    const store = await storeUnder(DOCUMENTED_POLICY, [deliveryOf(sourceless)])
    const dispositions = () => store.db.selectFrom('events').select('disposition').execute()
    expect(await dispositions()).toEqual([{ disposition: right }])
    await store.db.updateTable('events').set({ disposition: wrong }).execute()
    expect(await differencesIn(store)).toEqual([{ environment: 'live', kind: 'disposition', id: 'evt_1' }])
    await store.recompute(REBUILD)
    expect(await dispositions()).toEqual([{ disposition: right }])
  },
)

it('takes for right what a daemon writes down meanwhile, as time goes on', async () => {
  const policy: Policy = { ...DOCUMENTED_POLICY, canceled: 'period_end' }
  const ofCycle = { subscriptionId: 'sub_1', expiresAt: minute(10) }
  let now = minute(5)
  const clock = () => now
  const created = subscriptionEvent({ type: 'subscription.created', createdAt: minute(1), ...ofCycle })
  const canceled = subscriptionEvent({ type: 'subscription.canceled', createdAt: minute(2), ...ofCycle })
  const told = [created, canceled].map((event) => deliveryOf(bodyOf(event)))
  const store = await storeUnder(policy, told, { clock })
  await store.db.updateTable('events').set({ disposition: 'ignored' }).execute()
  const kinds = async (then: () => Promise<unknown>) => {
    const isStopping = async () => {
      now = minute(10)
      await then()
      return false
    }
    return (await differencesIn(store, { isStopping })).map(({ kind }) => kind)
  }
  expect(await kinds(async () => {})).toEqual(['disposition', 'disposition'])
  expect(await kinds(createRefreshDue({ db: store.db, clock }))).toEqual(['disposition', 'disposition'])
  expect(await store.db.selectFrom('entitlements').select('active').execute()).toEqual([{ active: 0 }])
})

it.each(['garbage', '{}'])(
  'names a source whose state is %s, and a rebuild mends it, also where its end has come meanwhile',
  async (state) => {
    const store = await storeUnder(DOCUMENTED_POLICY, [GRANT, OTHER_GRANT])
    await store.db.updateTable('sources').set({ state }).where('source_id', '=', 'pay_1').execute()
    await store.db.updateTable('entitlements').set({ next_change_at: NOW, active: 0 }).execute()
    await store.db
      .updateTable('entitlements')
      .set({ next_change_at: null })
      .where('customer_id', '=', 'cus_2')
      .execute()
    expect(await differencesIn(store)).toEqual([
      { environment: 'live', kind: 'source', id: 'payment pay_1' },
      { environment: 'live', kind: 'entitlement', id: 'cus_2 pro_1' },
    ])
    await store.recompute(REBUILD)
    expect(await differencesIn(store)).toEqual([])
    expect(await store.db.selectFrom('entitlements').select('active').execute()).toEqual([
      { active: 1 },
      { active: 1 },
    ])
  },
)

it.each([
  ['of another event', (history: string) => history.replace('evt_', 'evt_other_')],
  ['of another number', (history: string) => history.replace('\n1\t', '\n2\t')],
  ['without an event', () => '1'],
  ['of another version', (history: string) => history.replace('1', '0')],
])('names a source with a history %s, and a rebuild mends it', async (_how, alter) => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
  const stored = () => store.db.selectFrom('sources').select('history').executeTakeFirstOrThrow()
  const { history } = await stored()
  await store.db
    .updateTable('sources')
    .set({ history: alter(history) })
    .execute()
  expect(await differencesIn(store)).toEqual([{ environment: 'live', kind: 'source', id: 'payment pay_1' }])
  await store.recompute(REBUILD)
  expect(await differencesIn(store)).toEqual([])
  expect(await stored()).toEqual({ history })
})

it.each([
  ['names only the first of its events', (db: Kysely<Database>) => alterHistory(db, firstOf)],
  ['can’t be read', (db: Kysely<Database>) => alterHistory(db, () => 'garbage')],
  ['is gone with it', (db: Kysely<Database>) => db.deleteFrom('sources').execute()],
])('changes no access, not even for a moment, where a source’s history %s', async (_how, damage) => {
  const refund = paymentEvent({ type: 'payment.refunded', paymentId: 'pay_1', createdAt: minute(10) })
  const between = [2, 3, 4, 5].map((n) => grantOf(n))
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT, ...between, deliveryOf(bodyOf(refund))])
  const before = await everything(store.db)
  await damage(store.db)
  expect(await differencesIn(store)).toContainEqual({
    environment: 'live',
    kind: 'source',
    id: 'payment pay_1',
  })
  expect((await store.recompute(VERIFY)).access.all).toMatchObject({ gains: 0, losses: 0, otherwise: 0 })
  await store.recompute(REBUILD)
  expect(await everything(store.db)).toEqual(before)
})

function firstOf(history: string): string {
  return history.split('\n').slice(0, 2).join('\n')
}

async function alterHistory(db: Kysely<Database>, alter: (history: string) => string): Promise<void> {
  for (const { source_id: id, history } of await db.selectFrom('sources').selectAll().execute()) {
    await db
      .updateTable('sources')
      .set({ history: alter(history) })
      .where('source_id', '=', id)
      .execute()
  }
}

it('keeps out an event of a source whose history can’t be read, until a rebuild has mended it', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
  await store.db.updateTable('sources').set({ history: 'garbage' }).execute()
  const refund = deliveryOf(
    bodyOf(paymentEvent({ type: 'payment.refunded', paymentId: 'pay_1', createdAt: minute(10) })),
  )
  await expect(store.writeBatch([refund])).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('latchkey rebuild'),
  })
  await store.recompute(REBUILD)
  await store.writeBatch([refund])
  expect(await differencesIn(store)).toEqual([])
  expect(await store.db.selectFrom('entitlements').select('status').execute()).toEqual([
    { status: 'refunded' },
  ])
})

it('finds nothing once a payment was linked late, by whatever event', async () => {
  const paid = paymentEvent({ type: 'payment.authorized', paymentId: 'pay_1', createdAt: minute(1) })
  const other = paymentEvent({ type: 'payment.authorized', paymentId: 'pay_2', createdAt: minute(2) })
  const naming = (id: string, at: number) =>
    subscriptionEvent({
      type: 'subscription.renewed',
      subscriptionId: id,
      paymentId: 'pay_1',
      createdAt: minute(at),
    })
  const told = [paid, other, naming('sub_1', 3), naming('sub_2', 4)].map((event) => deliveryOf(bodyOf(event)))
  const store = await storeUnder(DOCUMENTED_POLICY, told)
  expect(await differencesIn(store)).toEqual([])
  const rows = await store.db
    .selectFrom('sources')
    .select(['source_id', 'history'])
    .orderBy('source_id')
    .execute()
  const kept = rows.map(({ source_id: id, history }) => [id, readHistory({ history }).map(({ seq }) => seq)])
  expect(kept).toEqual([
    ['pay_2', [2]],
    ['sub_1', [3]],
    ['sub_2', [1, 4]],
  ])
})

it('finds nothing once somebody was erased, nor after what comes of them later', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
  const stored = () => store.db.selectFrom('sources').select('history').executeTakeFirstOrThrow()
  const before = await stored()
  const erasure = {
    id: 'man_1',
    type: 'manual.erased',
    customerId: 'cus_1',
    actor: 'ada',
    reason: null,
  } as const
  await store.writeBatch([{ environment: 'live', undated: undatedAct(erasure) }])
  await finishErasures(store.db, () => NOW)
  expect(await stored()).toEqual(before)
  expect(await differencesIn(store)).toEqual([])
  const refund = paymentEvent({ type: 'payment.refunded', paymentId: 'pay_1', createdAt: minute(10) })
  await store.writeBatch([deliveryOf(bodyOf(refund))])
  expect(await differencesIn(store)).toEqual([])
})

it('names a source without an event, one that is missing, and a disposition that is wrong', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
  const { state } = await store.db.selectFrom('sources').select('state').executeTakeFirstOrThrow()
  const renamed = { source_id: 'pay_0', state: state.replace('pay_1', 'pay_0') }
  await store.db.updateTable('sources').set(renamed).execute()
  await store.db.updateTable('events').set({ disposition: 'ignored' }).execute()
  expect(await differencesIn(store)).toEqual([
    { environment: 'live', kind: 'source', id: 'payment pay_1' },
    { environment: 'live', kind: 'source', id: 'payment pay_0' },
    { environment: 'live', kind: 'disposition', id: 'evt_1' },
  ])
  await store.recompute(REBUILD)
  expect(await differencesIn(store)).toEqual([])
})
