import { type Kysely, sql } from 'kysely'
import { onTestFinished } from 'vitest'
import type { Policy } from '../../src/entitlements/policy.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import { createRebuild } from '../../src/ingest/rebuild.js'
import { createBatchWriter, type WriteBatch } from '../../src/ingest/write-batch.js'
import { EPOCH_SETTING } from '../../src/store/change-cursor.js'
import { openDatabase } from '../../src/store/dialect.js'
import { migrate } from '../../src/store/migrate.js'
import { policyInForce, settlePolicy } from '../../src/store/policy.js'
import type { Database } from '../../src/store/schema.js'
import { migratedFile } from '../store/migrated-file.js'
import { SOURCE_COLUMNS } from '../store/source-columns.js'

export const NOW = Date.UTC(2030, 0, 1)

/** Few at once, so that short histories take several batches, and some sources do not fit into one. */
export const PACE = { eventsAtOnce: 3, sourcesPerSave: 2 }

export interface RebuildStore {
  readonly file: string
  readonly db: Kysely<Database>
  readonly writeBatch: WriteBatch
  readonly rebuild: ReturnType<typeof createRebuild>
  close(): Promise<void>
}

/**
 * A store as a daemon that was started with this policy keeps it, with deliveries taken in. No write waits for the
 * disk: what these stores hold is asked of them alone.
 */
export async function storeUnder(
  policy: Policy,
  deliveries: readonly Delivery[] = [],
  { file, clock = () => NOW }: { readonly file?: string; readonly clock?: () => number } = {},
): Promise<RebuildStore> {
  const path = file ?? (await migratedFile())
  const db = openDatabase(path, { readOnly: false })
  let closed = false
  const close = async (): Promise<void> => {
    if (!closed) await db.destroy()
    closed = true
  }
  onTestFinished(close)
  if (file !== undefined) await migrate(db)
  await sql`pragma synchronous = off`.execute(db)
  await settlePolicy(db, policy)
  const writeBatch = createBatchWriter({ db, policy: policyInForce, clock })
  for (const delivery of deliveries) await writeBatch([delivery])
  return { file: path, db, writeBatch, rebuild: createRebuild({ db, clock, pace: PACE }), close }
}

/** All that the policy decides, and what must go with it, as the tables hold it. */
export async function decidedBy(db: Kysely<Database>) {
  const { cursor: _, ...tables } = await everything(db)
  return tables
}

/** The same, and where the change log stands. */
export async function everything(db: Kysely<Database>) {
  const cursor = await db
    .selectFrom('changes')
    .select((eb) => eb.fn.max('cursor').as('cursor'))
    .execute()
  return {
    sources: await db
      .selectFrom('sources')
      .select(SOURCE_COLUMNS)
      .orderBy('environment')
      .orderBy('kind')
      .orderBy('source_id')
      .execute(),
    entitlements: await db
      .selectFrom('entitlements')
      .selectAll()
      .orderBy('environment')
      .orderBy('customer_id')
      .orderBy('product_id')
      .execute(),
    links: await db
      .selectFrom('payment_links')
      .selectAll()
      .orderBy('environment')
      .orderBy('payment_id')
      .execute(),
    customers: await db
      .selectFrom('customers')
      .selectAll()
      .orderBy('environment')
      .orderBy('customer_id')
      .execute(),
    events: await db
      .selectFrom('events')
      .select(['environment', 'event_id', 'disposition', 'reason', 'source_kind', 'source_id'])
      .orderBy('environment')
      .orderBy('event_id')
      .execute(),
    settings: await db
      .selectFrom('settings')
      .selectAll()
      // Drawn by lot, once for each store.
      .where('key', '!=', EPOCH_SETTING)
      .orderBy('key')
      .execute(),
    left: [
      ...(await db.selectFrom('next_sources').selectAll().execute()),
      ...(await db.selectFrom('next_dispositions').selectAll().execute()),
      ...(await db.selectFrom('rebuild_marks').selectAll().execute()),
    ],
    cursor,
  }
}
