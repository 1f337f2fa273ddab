import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Config } from '../../src/config/schema.js'
import { checkReadings } from '../../src/doctor/stored.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { grantOf } from '../ingest/wire.js'
import { deliveries, storeUnder } from '../recompute/recompute-store.js'

const CONFIG: Pick<Config, 'endpoints'> = {
  endpoints: [{ name: 'v3', environment: 'live', secrets: [], toleranceSeconds: 300 }],
}

it('the doctor finds that what was taken in is stored as its bytes say, whatever it was', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, async (told) => {
      const { db, close } = await storeUnder(DOCUMENTED_POLICY, told)
      expect(await checkReadings(db, CONFIG)).toMatchObject([{ level: 'ok', what: 'readings' }])
      await close()
    }),
    { numRuns: 20 },
  )
})

it.each([
  { type: 'payment.settled' },
  { created_at: 1 },
  { customer_id: 'cus_9' },
  { payment_id: null },
  { normalized: null, disposition: 'quarantined', reason: 'normalizer_failed' },
  { normalized: '{}' },
] as const)('the doctor names the first event that is stored with %j, and a replay', async (otherwise) => {
  const { db } = await storeUnder(DOCUMENTED_POLICY, [grantOf(1), grantOf(2), grantOf(3)])
  await db.updateTable('events').set(otherwise).where('event_id', '!=', 'evt_1').execute()
  expect(await checkReadings(db, CONFIG)).toEqual([
    {
      level: 'warn',
      what: 'readings',
      detail: '2 of 3 events stored otherwise than the bytes say, the first evt_2 in live',
      todo: 'see what reading them again would change: `latchkey replay --dry-run`',
    },
  ])
})
