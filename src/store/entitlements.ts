import type { Insertable, Kysely, Selectable, Transaction } from 'kysely'
import { sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import type { AccessSnapshot } from './changes.js'
import { chunkRows, valuesOf } from './chunk.js'
import type { Database, EntitlementsTable } from './schema.js'

/** What is stored of one entitlement: its answer as of the last write. */
export interface EntitlementRecord extends AccessSnapshot {
  readonly customerId: string
  readonly productId: string
  /** The instant at which this answer changes by the clock alone; null: never. */
  readonly nextChangeAt: number | null
}

const VALUES_PER_ROW = 8

/** By customer id; a customer who never had access to anything has an empty list. */
export async function loadEntitlements(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly EntitlementRecord[]>> {
  const found = new Map<string, EntitlementRecord[]>(customerIds.map((id) => [id, []]))
  for (const chunk of chunkRows([...found.keys()], 1)) {
    const rows = await db
      .selectFrom('entitlements')
      .selectAll()
      .where('environment', '=', environment)
      .where('customer_id', 'in', chunk)
      .orderBy('customer_id')
      .orderBy('product_id')
      .execute()
    for (const row of rows) found.get(row.customer_id)?.push(fromRow(row))
  }
  return found
}

/** Each entitlement at most once. */
export async function saveEntitlements(
  trx: Transaction<Database>,
  environment: Environment,
  records: readonly EntitlementRecord[],
): Promise<void> {
  for (const chunk of chunkRows(records, VALUES_PER_ROW)) {
    await trx
      .insertInto('entitlements')
      .values(chunk.map((record) => toRow(environment, record)))
      .onConflict((conflict) =>
        conflict.columns(['environment', 'customer_id', 'product_id']).doUpdateSet((eb) => ({
          active: eb.ref('excluded.active'),
          status: eb.ref('excluded.status'),
          since: eb.ref('excluded.since'),
          until: eb.ref('excluded.until'),
          next_change_at: eb.ref('excluded.next_change_at'),
        })),
      )
      .execute()
  }
}

export async function deleteEntitlements(
  trx: Transaction<Database>,
  environment: Environment,
  keys: readonly Pick<EntitlementRecord, 'customerId' | 'productId'>[],
): Promise<void> {
  for (const chunk of chunkRows(keys, 2)) {
    const pairs = valuesOf(chunk.map(({ customerId, productId }) => [customerId, productId]))
    await trx
      .deleteFrom('entitlements')
      .where('environment', '=', environment)
      .where(sql<boolean>`(customer_id, product_id) in (${pairs})`)
      .execute()
  }
}

/** Entitlements whose answer has changed by the clock alone by `now`, the longest overdue first. */
export async function loadDue(
  db: Kysely<Database>,
  now: number,
  limit: number,
): Promise<readonly (EntitlementRecord & { readonly environment: Environment })[]> {
  const rows = await db
    .selectFrom('entitlements')
    .selectAll()
    .where('next_change_at', '<=', now)
    .orderBy('next_change_at')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ environment: row.environment, ...fromRow(row) }))
}

function toRow(environment: Environment, record: EntitlementRecord): Insertable<EntitlementsTable> {
  return {
    environment,
    customer_id: record.customerId,
    product_id: record.productId,
    active: record.active ? 1 : 0,
    status: record.status,
    since: record.since,
    until: record.until,
    next_change_at: record.nextChangeAt,
  }
}

function fromRow(row: Selectable<EntitlementsTable>): EntitlementRecord {
  return {
    customerId: row.customer_id,
    productId: row.product_id,
    active: row.active === 1,
    status: row.status,
    since: row.since,
    until: row.until,
    nextChangeAt: row.next_change_at,
  }
}
