import { type RawBuilder, sql } from 'kysely'
import { NEVER_GRANTED, snapshotOf } from '../entitlements/entitlement.js'
import type { AccessSnapshot } from '../entitlements/model.js'
import { compareText } from '../entitlements/order.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkUpsert, inEnvironment, lookupIn } from './bulk.js'
import type { Db, EntitlementsTable, Tx } from './schema.js'

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

/** By customer id, in the order of products; without customers who never had access. */
export async function loadEntitlements(
  db: Db,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly EntitlementRecord[]>> {
  const rows = await selectEntitlements(db, environment, [...new Set(customerIds)])
  const records = rows.map(recordIn).sort((a, b) => compareText(a.productId, b.productId))
  return Map.groupBy(records, ({ customerId }) => customerId)
}

const upsert = bulkUpsert('entitlements', ['environment', 'customer_id', 'product_id'])

/** Each entitlement at most once. */
export function saveEntitlements(
  trx: Tx,
  environment: Environment,
  records: readonly EntitlementRecord[],
): Promise<void> {
  const rows = records.map((record) => toRow(environment, record))
  return upsert(trx, rows)
}

export const deleteEntitlements = inEnvironment(
  bulkLookup(
    ['environment', 'customer_id', 'product_id'],
    (matches) => sql`delete from entitlements where ${matches}`,
  ),
  ({ customerId, productId }: Pick<EntitlementRecord, 'customerId' | 'productId'>) => [customerId, productId],
)

/** Entitlements whose answer has changed by time alone by `now`, the longest overdue first. */
export async function loadDue(
  db: Db,
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
