import fc from 'fast-check'
import type { Kysely } from 'kysely'
import { expect, it } from 'vitest'
import type { Policy } from '../../src/entitlements/policy.js'
import { type AccessDifference, createDifferenceCounter } from '../../src/ingest/access-difference.js'
import { policyDifferences } from '../../src/ingest/policy-difference.js'
import { loadChanges } from '../../src/store/changes.js'
import type { Database } from '../../src/store/schema.js'
import { policies } from '../entitlements/policies.js'
import { deliveries } from './rebuild-histories.js'
import { everything, NOW, storeUnder } from './rebuild-store.js'

const ENVIRONMENTS = ['live', 'sandbox'] as const
const SOON = Date.UTC(2026, 0, 20)

async function differences(db: Kysely<Database>, policy: Policy): Promise<AccessDifference[]> {
  const found: AccessDifference[] = []
  for (const environment of ENVIRONMENTS) {
    for await (const difference of policyDifferences(db, environment, policy, NOW)) found.push(difference)
  }
  return found
}

/** What the change log says that rebuilding did. */
async function rebuilt(db: Kysely<Database>): Promise<AccessDifference[]> {
  const logged = await Promise.all(ENVIRONMENTS.map((environment) => loadChanges(db, environment, 0, 10_000)))
  return logged
    .flat()
    .filter(({ cause }) => cause.kind === 'rebuild')
    .map(({ environment, customerId, productId, before, after }) => ({
      environment,
      customerId,
      productId,
      before,
      after,
    }))
}

it('tells just what a rebuild then does, and changes nothing itself', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, policies, async (told, before, after) => {
      let now = SOON
      const store = await storeUnder(before, told, { clock: () => now })
      now = NOW
      const untouched = await everything(store.db)
      const expected = await differences(store.db, after)
      expect(await everything(store.db)).toEqual(untouched)

      const summary = await store.rebuild(after)
      const done = await rebuilt(store.db)
      const byText = (found: readonly AccessDifference[]) => found.map((one) => JSON.stringify(one)).sort()
      expect(byText(done)).toEqual(byText(expected))
      const counted = (found: readonly AccessDifference[]) => {
        const counter = createDifferenceCounter(10)
        for (const difference of found) counter.add(difference)
        return counter.summary()
      }
      const ofOne = (only: string) => counted(done.filter(({ environment }) => environment === only))
      expect(summary).toEqual({
        ...counted(done),
        byEnvironment: { live: ofOne('live'), sandbox: ofOne('sandbox') },
      })
      expect(await differences(store.db, after)).toEqual([])
      await store.close()
    }),
    { numRuns: 40 },
  )
})
