import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import { readAccesses, readGrants } from '../../src/store/access.js'
import { mixedHistory } from '../entitlements/histories.js'
import { bodyOf, deliveryOf } from '../ingest/wire.js'
import { migratedFile, open } from './temporary-store.js'

const NOON = Date.UTC(2026, 2, 1, 12)
const MONTH_MS = 30 * 24 * 3_600_000

it('what a customer may use now is the same with the reasons and without, long after the last event', async () => {
  const later = fc.array(fc.nat(14 * MONTH_MS), { minLength: 1, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(mixedHistory, later, async (history, waits) => {
      const db = open(await migratedFile())
      const writeBatch = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: () => NOON })
      await writeBatch(history.map((event) => deliveryOf(bodyOf(event))))
      const asked = { environment: 'live', customerIds: ['cus_1', 'cus_2', 'cus_3'] } as const
      for (const wait of [0, ...waits]) {
        const clock = () => NOON + wait
        const grants = await readGrants(db, clock, asked)
        for (const { customerId, entitlements } of await readAccesses(db, clock, { ...asked, at: null })) {
          const own = grants.get(customerId) ?? []
          const essence = entitlements.map(({ productId, active, until }) => ({ productId, active, until }))
          expect(own.map(({ productId, active, until }) => ({ productId, active, until }))).toEqual(essence)
        }
      }
    }),
    { numRuns: 60 },
  )
})
