import fc from 'fast-check'
import { type Kysely, sql } from 'kysely'
import { expect, it } from 'vitest'
import type { Policy } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import { finishErasures } from '../../src/people/remove-stored.js'
import { normalise } from '../../src/provider/normalise.js'
import type { DeliveryInput } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { mixedHistory } from '../entitlements/histories.js'
import { heldOf, plainSources } from '../entitlements/plain/ask.js'
import { plainEntitlements } from '../entitlements/plain/entitlements.js'
import { policies } from '../entitlements/policies.js'
import { emptyStores, migratedFile } from '../store/temporary-store.js'
import { wholeState } from '../store/whole-state.js'
import { ENGINE } from '../world.js'
import { deliveriesOf, redelivered, withErasures } from './redelivered.js'

const NOW = Date.UTC(2030, 0, 1)

/** `INTERLEAVINGS`: of two instances, as many as one has time for. */
const INTERLEAVINGS = Number(process.env.INTERLEAVINGS ?? 20)
const RUNS =
  ENGINE === 'sqlite'
    ? { order: 60, erasures: 40, entitlements: 150 }
    : { order: INTERLEAVINGS, erasures: INTERLEAVINGS, entitlements: INTERLEAVINGS }

/** Everything that must not depend on the order of arrival, read from the tables themselves. */
async function stateAfter(batches: readonly (readonly DeliveryInput[])[], policy: Policy) {
  const db = openDatabase(await migratedFile(), { readOnly: false })
  // Nobody asks this store after its process has ended.
  await sql`pragma synchronous = off`.execute(db)
  return stateIn([db], batches, policy)
}

/** The same on the engine of this run; on PostgreSQL by two that take every other batch, each at its own pace. */
async function stateShared(batches: readonly (readonly DeliveryInput[])[], policy: Policy) {
  return stateIn(await emptyStores(ENGINE === 'sqlite' ? 1 : 2), batches, policy)
}

async function stateIn(
  writers: readonly Kysely<Database>[],
  batches: readonly (readonly DeliveryInput[])[],
  policy: Policy,
) {
  const [db] = writers as readonly [Kysely<Database>]
  try {
    await Promise.all(
      writers.map(async (own, i) => {
        const writeBatch = createBatchWriter({ db: own, policy: () => policy, clock: () => NOW })
        for (const [n, batch] of batches.entries()) if (n % writers.length === i) await writeBatch(batch)
      }),
    )
    await finishErasures(db, () => NOW)
    return await wholeState(db)
  } finally {
    for (const one of writers) await one.destroy()
  }
}

const casesOf = <One extends DeliveryInput>(histories: fc.Arbitrary<readonly One[]>) =>
  histories.chain((deliveries) =>
    fc.record({ deliveries: fc.constant(deliveries), other: redelivered(deliveries), policy: policies }),
  )

it('ends in one state, whatever the order, the duplicates and the batches', async () => {
  await fc.assert(
    fc.asyncProperty(casesOf(mixedHistory.map(deliveriesOf)), async ({ deliveries, other, policy }) => {
      const inOrder = await stateAfter(
        deliveries.map((delivery) => [delivery]),
        policy,
      )
      expect(await stateShared(other, policy)).toEqual(inOrder)
    }),
    { numRuns: RUNS.order },
  )
})

it('ends in one state with people erased along the way, whenever that arrives', async () => {
  await fc.assert(
    fc.asyncProperty(casesOf(withErasures), async ({ deliveries, other, policy }) => {
      const inOrder = await stateAfter(
        deliveries.map((delivery) => [delivery]),
        policy,
      )
      for (const { body, body_removed: why, normalized } of inOrder.bodiesOfErased) {
        expect({ body, why }).toEqual({ body: null, why: 'erased' })
        expect(normalized).not.toMatch(/example\.com|Some Body|"ref"/)
      }
      const erased = inOrder.erased.map(({ customer_id: id }) => id)
      const known = inOrder.customers.filter(({ customer_id: id }) => erased.includes(id))
      expect(JSON.stringify(known)).not.toMatch(/example\.com|Some Body|"ref"/)
      expect(await stateShared(other, policy)).toEqual(inOrder)
    }),
    { numRuns: RUNS.erasures },
  )
})

it('stores the entitlements that the plain reading of the rules finds', async () => {
  await fc.assert(
    fc.asyncProperty(mixedHistory, policies, async (events, policy) => {
      const deliveries = deliveriesOf(events)
      const normalised = deliveries.flatMap((delivery) => {
        const read = normalise(delivery.body, delivery)
        return read.ok ? [read.event] : []
      })
      const { entitlements, events: stored } = await stateShared([deliveries], policy)
      expect(
        entitlements.map(
          ({ customer_id: customerId, product_id: productId, active, status, since, until }) => ({
            customerId,
            productId,
            active: active === 1,
            status,
            since,
            until,
          }),
        ),
      ).toEqual(
        plainEntitlements(plainSources(normalised, policy), NOW).map(({ pastDue: _, ...rest }) => rest),
      )
      const held = stored.filter(
        ({ disposition, reason }) => disposition === 'held' && reason !== 'source_unknown',
      )
      expect(Object.fromEntries(held.map(({ event_id, reason }) => [event_id, reason]))).toEqual(
        heldOf(normalised, policy),
      )
    }),
    { numRuns: RUNS.entitlements },
  )
})
