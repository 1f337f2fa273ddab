import fc from 'fast-check'
import { type Kysely, sql } from 'kysely'
import { expect, it } from 'vitest'
import type { Policy } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import { finishErasures } from '../../src/people/remove-stored.js'
import type { NormalizedEvent } from '../../src/provider/event.js'
import { normalise } from '../../src/provider/normalise.js'
import type { DeliveryInput } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { byHand } from '../entitlements/events.js'
import { mixedHistory } from '../entitlements/histories.js'
import { heldOf, plainSources } from '../entitlements/plain/ask.js'
import { plainEntitlements } from '../entitlements/plain/entitlements.js'
import { policies } from '../entitlements/policies.js'
import { customersIn, eventsIn, SOURCE_COLUMNS } from '../store/tables.js'
import { emptyStores, migratedFile } from '../store/temporary-store.js'
import { ENGINE } from '../world.js'
import { bodyOf, deliveryOf } from './wire.js'

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
    const sources = await db
      .selectFrom('sources')
      .select(SOURCE_COLUMNS)
      .orderBy('kind')
      .orderBy('source_id')
      .execute()
    return {
      entitlements: await db
        .selectFrom('entitlements')
        .selectAll()
        .orderBy('customer_id')
        .orderBy('product_id')
        .execute(),
      sources: sources.map(({ history, ...source }) => ({ ...source, history: eventsIn(history) })),
      references: await db
        .selectFrom('customer_references')
        .selectAll()
        .orderBy('name')
        .orderBy('value')
        .orderBy('customer_id')
        .execute(),
      erased: await db
        .selectFrom('erasures')
        .select(['customer_id', 'erased_at', 'was_known'])
        .orderBy('customer_id')
        .execute(),
      bodiesOfErased: await db
        .selectFrom('events')
        .innerJoin('erasures', 'erasures.customer_id', 'events.customer_id')
        .select(['events.event_id', 'events.body', 'events.body_removed', 'events.normalized'])
        .where('events.headers', '!=', 'null')
        .orderBy('events.event_id')
        .execute(),
      links: await db.selectFrom('payment_links').selectAll().orderBy('payment_id').execute(),
      customers: await customersIn(db),
      events: await db
        .selectFrom('events')
        .select(['event_id', 'disposition', 'reason', 'source_kind', 'source_id'])
        .orderBy('event_id')
        .execute(),
    }
  } finally {
    for (const one of writers) await one.destroy()
  }
}

/** The same deliveries in another order, some of them twice, in batches of any size. */
function redelivered<One extends DeliveryInput>(deliveries: readonly One[]): fc.Arbitrary<One[][]> {
  return fc
    .tuple(fc.subarray([...deliveries]), fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 }))
    .chain(([again, sizes]) =>
      fc
        .shuffledSubarray([...deliveries, ...again], { minLength: deliveries.length + again.length })
        .map((all) => {
          const batches: One[][] = []
          for (let i = 0; all.length > 0; i += 1) batches.push(all.splice(0, sizes[i % sizes.length]))
          return batches
        }),
    )
}

const casesOf = <One extends DeliveryInput>(histories: fc.Arbitrary<readonly One[]>) =>
  histories.chain((deliveries) =>
    fc.record({ deliveries: fc.constant(deliveries), other: redelivered(deliveries), policy: policies }),
  )

const deliveriesOf = (events: readonly NormalizedEvent[]) => events.map((event) => deliveryOf(bodyOf(event)))

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

/** Each event tells of the person too, and some of the people are erased at some time. */
const withErasures = fc
  .tuple(mixedHistory, fc.subarray(['cus_1', 'cus_2'], { minLength: 1 }), fc.nat(90_000))
  .map(([events, erased, at]) => {
    const told = events.map((event) => {
      const body = JSON.parse(bodyOf(event)) as { data: { customer?: object | null } }
      const { customer } = body.data
      const details = { email: `${event.customerId}@example.com`, name: 'Some Body' }
      const data = customer
        ? { ...body.data, customer: { ...customer, ...details }, external_ref: 'ref' }
        : body.data
      return deliveryOf(JSON.stringify({ ...body, data }))
    })
    const acts = erased.map((customerId, index): DeliveryInput => {
      const act = { ...byHand('manual.erased', at + index, { productId: null }), customerId }
      const body = Buffer.from(JSON.stringify({ ...act, id: `man_${customerId}` }))
      return { endpoint: 'manual', environment: 'live', body, headers: null, receivedAt: NOW }
    })
    return [...told, ...acts]
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
