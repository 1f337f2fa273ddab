import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { expect } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import { migrate } from '../../src/store/migrate.js'
import type { Database } from '../../src/store/schema.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { eventsIn, SOURCE_COLUMNS } from '../store/tables.js'
import { readStore, temporaryFolder } from '../world.js'

/**
 * What must hold after any fault: the database is sound, each acknowledged event is stored once, and what
 * stands is what all stored events come to. Answers with the ids of the stored events.
 */
export async function expectNothingLost(
  folder: string,
  acknowledged: readonly string[],
  moment?: string,
): Promise<readonly string[]> {
  const { rows } = await readStore(folder, (db) =>
    sql<{ integrity_check: string }>`pragma integrity_check`.execute(db),
  )
  expect(rows, moment).toEqual([{ integrity_check: 'ok' }])
  const ids = await storedIds(folder)
  const stored = new Set(ids)
  expect(stored.size, moment).toBe(ids.length)
  const lost = acknowledged.filter((id) => !stored.has(id))
  expect(lost, moment).toEqual([])
  expect(await foldedState(folder), moment).toEqual(await foldedAnew(folder))
  return ids
}

/** The stored events in the order of their arrival. */
export async function storedIds(folder: string): Promise<readonly string[]> {
  const rows = await readStore(folder, (db) =>
    db.selectFrom('events').select('event_id').orderBy('seq').execute(),
  )
  return rows.map(({ event_id: id }) => id)
}

/** What was folded out of the stored events, as the tables hold it. */
export function foldedState(folder: string) {
  return readStore(folder, readFolded)
}

/** What the stored events come to when they are delivered anew, the last one first, to an empty store. */
async function foldedAnew(folder: string) {
  const deliveries = await readStore(folder, readDeliveries)
  const db = openDatabase(join(temporaryFolder(), 'anew.db'), { readOnly: false })
  try {
    await migrate(db)
    await sql`pragma synchronous = off`.execute(db)
    if (deliveries.length > 0) {
      await createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: Date.now })(deliveries.reverse())
    }
    return await readFolded(db)
  } finally {
    await db.destroy()
  }
}

async function readFolded(db: Kysely<Database>) {
  const entitlements = db.selectFrom('entitlements').selectAll().orderBy('customer_id').orderBy('product_id')
  const sources = db.selectFrom('sources').select(SOURCE_COLUMNS).orderBy('kind').orderBy('source_id')
  const dispositions = db
    .selectFrom('events')
    .select(['event_id', 'disposition', 'reason', 'source_kind', 'source_id'])
    .orderBy('event_id')
  return {
    entitlements: await entitlements.execute(),
    sources: (await sources.execute()).map(({ history, ...source }) => ({
      ...source,
      history: eventsIn(history),
    })),
    dispositions: await dispositions.execute(),
  }
}

async function readDeliveries(db: Kysely<Database>): Promise<Delivery[]> {
  const rows = await db
    .selectFrom('events')
    .select(['endpoint', 'environment', 'body', 'headers', 'received_at'])
    .orderBy('seq')
    .execute()
  return rows.map(({ endpoint, environment, body, headers, received_at }) => ({
    endpoint,
    environment,
    body: body ?? Buffer.alloc(0),
    headers: JSON.parse(headers) as Delivery['headers'],
    receivedAt: received_at,
  }))
}
