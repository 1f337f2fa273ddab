import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import { migrate } from '../../src/store/migrate.js'
import type { Database } from '../../src/store/schema.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { temporaryFolder } from '../setup/program.js'
import { eventsIn, SOURCE_COLUMNS } from '../store/tables.js'
import { readStore } from './served.js'

/** The stored events in the order of their arrival: the ids, and how often each was delivered. */
export function storedEvents(folder: string) {
  return readStore(folder, (db) =>
    db.selectFrom('events').select(['event_id', 'deliveries']).orderBy('seq').execute(),
  )
}

/** What was folded out of the stored events, as the tables hold it. */
export function foldedState(folder: string) {
  return readStore(folder, readFolded)
}

/** What the stored events come to when they are delivered anew, the last one first, to an empty store. */
export async function foldedAnew(folder: string) {
  const deliveries = await readStore(folder, readDeliveries)
  const db = openDatabase(join(temporaryFolder(), 'anew.db'), { readOnly: false })
  try {
    await migrate(db)
    if (deliveries.length > 0) {
      await createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: Date.now })(deliveries.reverse())
    }
    return await readFolded(db)
  } finally {
    await db.destroy()
  }
}

async function readFolded(db: Kysely<Database>) {
  return {
    entitlements: await db
      .selectFrom('entitlements')
      .selectAll()
      .orderBy('customer_id')
      .orderBy('product_id')
      .execute(),
    sources: (
      await db.selectFrom('sources').select(SOURCE_COLUMNS).orderBy('kind').orderBy('source_id').execute()
    ).map(({ history, ...source }) => ({ ...source, history: eventsIn(history) })),
    dispositions: await db
      .selectFrom('events')
      .select(['event_id', 'disposition', 'reason', 'source_kind', 'source_id'])
      .orderBy('event_id')
      .execute(),
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
