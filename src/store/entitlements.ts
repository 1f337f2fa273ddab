import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import { NEVER_GRANTED, snapshotOf } from '../entitlements/entitlement.js'
import type { AccessSnapshot } from '../entitlements/model.js'
import { compareText } from '../entitlements/order.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkUpsert, lookupIn } from './bulk.js'
import type { Database, EntitlementsTable } from './schema.js'

/** A stored entitlement: its answer as of the last write. */
export interface EntitlementRecord extends AccessSnapshot {
  readonly customerId: string
  readonly productId: string
  /** The instant at which time alone changes this answer; null: never. */
  readonly nextChangeAt: number | null
}

const selectWhere = (which: RawBuilder<unknown>) => sql<EntitlementsTable>`
  select environment, customer_id, product_id, active, shown, next_change_at from entitlements where ${which}`
const selectEntitlements = lookupIn('customer_id', selectWhere)

/** By customer id, in the order of products; customers who never had access have an empty list. */
export async function loadEntitlements(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly EntitlementRecord[]>> {
  const found = new Map<string, EntitlementRecord[]>(customerIds.map((id) => [id, []]))
  for (const row of await selectEntitlements(db, environment, [...found.keys()])) {
    found.get(row.customer_id)?.push(recordIn(row))
  }
  for (const records of found.values()) records.sort((a, b) => compareText(a.productId, b.productId))
  return found
}

const upsert = bulkUpsert(
  'entitlements',
  ['environment', 'customer_id', 'product_id'],
  ['active', 'shown', 'next_change_at'],
)

/** Each entitlement at most once. */
export function saveEntitlements(
  trx: Transaction<Database>,
  environment: Environment,
  records: readonly EntitlementRecord[],
): Promise<void> {
  return upsert(
    trx,
    records.map((record) => toRow(environment, record)),
  )
}

const remove = bulkLookup(
  ['environment', 'customer_id', 'product_id'],
  (matches) => sql`delete from entitlements where ${matches}`,
)

export async function deleteEntitlements(
  trx: Transaction<Database>,
  environment: Environment,
  keys: readonly Pick<EntitlementRecord, 'customerId' | 'productId'>[],
): Promise<void> {
  const rows = keys.map(({ customerId, productId }) => [environment, customerId, productId])
  await remove(trx, rows)
}

/** Entitlements whose answer has changed by time alone by `now`, the longest overdue first. */
export async function loadDue(
  db: Kysely<Database>,
  now: number,
  limit: number,
): Promise<readonly (EntitlementRecord & { readonly environment: Environment })[]> {
  const due = sql`next_change_at <= ${now} order by next_change_at limit ${limit}`
  const { rows } = await selectWhere(due).execute(db)
  return rows.map((row) => ({ environment: row.environment, ...recordIn(row) }))
}

function toRow(environment: Environment, record: EntitlementRecord): EntitlementsTable {
  const { active, ...shown } = snapshotOf(record)
  return {
    environment,
    customer_id: record.customerId,
    product_id: record.productId,
    active: active ? 1 : 0,
    shown: JSON.stringify(shown),
    next_change_at: record.nextChangeAt,
  }
}

function recordIn(row: EntitlementsTable): EntitlementRecord {
  const { customer_id: customerId, product_id: productId, next_change_at: nextChangeAt } = row
  return { customerId, productId, ...shownIn(row), active: row.active === 1, nextChangeAt }
}

/** Only damage makes it unreadable: then it differs from what the sources say, and is written again. */
function shownIn({ shown }: EntitlementsTable): Omit<AccessSnapshot, 'active'> {
  try {
    return { ...NEVER_GRANTED, ...JSON.parse(shown) }
  } catch {
    return NEVER_GRANTED
  }
}
