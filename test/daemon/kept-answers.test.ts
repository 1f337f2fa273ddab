import fc from 'fast-check'
import type { Kysely } from 'kysely'
import { expect, it } from 'vitest'
import { catalogOf } from '../../src/entitlements/features.js'
import { access, toJson } from '../../src/handlers/answers.js'
import { readAccess } from '../../src/store/access.js'
import type { Database } from '../../src/store/schema.js'
import { mixedHistory } from '../entitlements/histories.js'
import { bodyOf } from '../ingest/wire.js'
import { ask, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'

const CUSTOMERS = ['cus_1', 'cus_2', 'cus_3'] as const
const MONTH_MS = 30 * 24 * 3_600_000

const PRODUCTS = { pro_a: { features: ['export', 'api'] }, pro_b: { features: ['api'] } }
const { withFeatures } = catalogOf(Object.entries(PRODUCTS).map(([id, product]) => ({ id, ...product })))

/** What the store says, asked past everything that the daemon keeps; without the cursor, which others move. */
async function storedAnswer(db: Kysely<Database>, customerId: string, now: number): Promise<object> {
  const stored = await readAccess(db, () => now, { environment: 'live', customerId, at: null })
  const { cursor: _, ...answer } = toJson(access, withFeatures(stored))
  return answer
}

async function givenAnswer(daemon: RunningDaemon, customerId: string): Promise<object> {
  const { cursor: _, ...answer } = (await (await ask(daemon, `/entitlements/${customerId}`)).json()) as {
    cursor: string
  }
  return answer
}

it('is asked again and again what the store says, whatever came meanwhile and however the clock goes', async () => {
  const clocks = fc.infiniteStream(fc.integer({ min: -MONTH_MS, max: 14 * MONTH_MS }))
  await fc.assert(
    fc.asyncProperty(mixedHistory, clocks, async (history, offsets) => {
      const daemon = await runDaemon({ config: { products: PRODUCTS } })
      await daemon.stored(async (db) => {
        for (const event of history.slice(0, 12)) {
          expect((await send(daemon, bodyOf(event))).status).toBe(200)
          const now = NOW + offsets.next().value
          for (const instant of [NOW, now]) {
            daemon.setNow(instant)
            for (const customerId of CUSTOMERS) {
              const stored = await storedAnswer(db, customerId, instant)
              expect(await givenAnswer(daemon, customerId)).toEqual(stored)
            }
          }
          daemon.setNow(NOW)
        }
      })
      await daemon.stop()
    }),
    { numRuns: 12 },
  )
})
