import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { type StateDifference, stateDifferences } from '../../src/ingest/verify-state.js'
import { policies } from '../entitlements/policies.js'
import { deliveries } from './rebuild-histories.js'
import { NOW, type RebuildStore, storeUnder } from './rebuild-store.js'
import { deliveryOf } from './wire.js'

async function differences({ db }: RebuildStore, policy = DOCUMENTED_POLICY): Promise<StateDifference[]> {
  const found: StateDifference[] = []
  for await (const difference of stateDifferences(db, policy, NOW)) found.push(difference)
  return found
}

const data = { id: 'pay_1', customer: 'cus_1', product: 'pro_1', method: 'CARD' }
const GRANT = deliveryOf(
  JSON.stringify({ id: 'evt_1', type: 'payment.authorized', createdAt: '2026-01-01T00:00:00Z', data }),
)

it('finds nothing in what was taken in, whatever it was', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, async (told, policy) => {
      const store = await storeUnder(policy, told)
      expect(await differences(store, policy)).toEqual([])
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
  expect(await differences(store)).toEqual([
    { environment: 'live', kind: 'source', id: 'payment pay_1' },
    { environment: 'live', kind: 'entitlement', id: 'cus_1 pro_1' },
    { environment: 'live', kind: 'entitlement', id: 'cus_1 pro_9' },
  ])
  await store.rebuild(DOCUMENTED_POLICY)
  expect(await differences(store)).toEqual([])
})

it('names a source without an event, one that is missing, and a disposition that is wrong', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY, [GRANT])
  const { state } = await store.db.selectFrom('sources').select('state').executeTakeFirstOrThrow()
  const renamed = { source_id: 'pay_0', state: state.replace('pay_1', 'pay_0') }
  await store.db.updateTable('sources').set(renamed).execute()
  await store.db.updateTable('events').set({ disposition: 'ignored' }).execute()
  expect(await differences(store)).toEqual([
    { environment: 'live', kind: 'source', id: 'payment pay_0' },
    { environment: 'live', kind: 'source', id: 'payment pay_1' },
    { environment: 'live', kind: 'disposition', id: 'evt_1' },
  ])
  await store.rebuild(DOCUMENTED_POLICY)
  expect(await differences(store)).toEqual([])
})
