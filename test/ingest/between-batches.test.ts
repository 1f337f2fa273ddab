import { type Kysely, sql } from 'kysely'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import type { Database } from '../../src/store/schema.js'
import { open, temporaryFile, temporaryStore } from '../store/temporary-store.js'
import { deliveryOf } from './wire.js'

const AT = Date.UTC(2026, 5, 1)
const CAUSES_FAILURE = 'cus_failing'

let lastEvent = 0

/** Another event of the customer's subscription. */
function eventOf(customerId: string, type = 'subscription.renewed') {
  lastEvent += 1
  const data = {
    id: `sub_of_${customerId}`,
    customer: { id: customerId, email: `${customerId}@example.com` },
    product: { id: 'pro_1' },
    payment_id: `pay_of_${customerId}`,
    external_ref: `user of ${customerId}`,
  }
  return deliveryOf(
    JSON.stringify({
      id: `evt_${lastEvent}`,
      type,
      createdAt: new Date(AT - 60_000 + lastEvent).toISOString(),
      data,
    }),
  )
}

/** All that a customer's events leave beside the entitlements. */
const TABLES = ['sources', 'customers', 'customer_references', 'payment_links'] as const

async function rowsOf(db: Kysely<Database>) {
  const counts = await Promise.all(
    TABLES.map((table) =>
      db
        .selectFrom(table)
        .select(({ fn }) => fn.countAll<number>().as('rows'))
        .execute(),
    ),
  )
  return Object.fromEntries(TABLES.map((table, i) => [table, counts[i]?.[0]?.rows]))
}

async function emptyTables(db: Kysely<Database>): Promise<void> {
  await db.transaction().execute(async (trx) => {
    for (const table of TABLES) await trx.deleteFrom(table).execute()
  })
}

const ONE_OF_EACH = { sources: 1, customers: 1, customer_references: 1, payment_links: 1 }
const TWO_OF_EACH = { sources: 2, customers: 2, customer_references: 2, payment_links: 2 }

const writerOn = (db: Kysely<Database>) =>
  createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: () => AT })

it.each(['on the same connection', 'by another process'])(
  'a batch builds on nothing that was taken away since %s',
  async (by) => {
    const file = temporaryFile()
    const db = await temporaryStore(file)
    const write = writerOn(db)
    await write([eventOf('cus_1', 'subscription.created')])
    await emptyTables(by === 'on the same connection' ? db : open(file))
    await write([eventOf('cus_1')])
    expect(await rowsOf(db)).toEqual(ONE_OF_EACH)
  },
)

it('a batch builds on nothing of one that failed', async () => {
  const db = await temporaryStore()
  const write = writerOn(db)
  await sql`
    create trigger failing before insert on changes when new.customer_id = ${sql.lit(CAUSES_FAILURE)}
    begin select raise(abort, 'failing'); end`.execute(db)
  await write([eventOf('cus_1')])
  await expect(write([eventOf('cus_2'), eventOf(CAUSES_FAILURE)])).rejects.toMatchObject({
    code: 'SQLITE_CONSTRAINT_TRIGGER',
  })
  expect(await rowsOf(db)).toEqual(ONE_OF_EACH)
  await write([eventOf('cus_2')])
  expect(await rowsOf(db)).toEqual(TWO_OF_EACH)
})

it('one writer leaves in the tables what a new one for each batch does', async () => {
  const [one, others] = [await temporaryStore(), await temporaryStore()]
  const write = writerOn(one)
  const events = Array.from({ length: 40 }, (_, n) => eventOf(`cus_${(n * n) % 7}`))
  for (const event of events) {
    await write([event])
    await writerOn(others)([event])
  }
  for (const table of [...TABLES, 'entitlements'] as const) {
    const [lately, anew] = await Promise.all(
      [one, others].map((db) => db.selectFrom(table).selectAll().execute()),
    )
    expect(lately).toEqual(anew)
  }
})
