import { type RawBuilder, sql } from 'kysely'
import type { AccessSnapshot } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { compareText } from '../provider/order.js'
import { bulkLookup, bulkStatement, bulkUpsert, inEnvironment, lookupIn } from './bulk.js'
import type { Db, EntitlementsTable, Tx } from './schema.js'

/** A stored entitlement: its answer as of the last write. */
export interface EntitlementRecord extends AccessSnapshot {
  readonly customerId: string
  readonly productId: string
  /** The instant at which time alone changes this answer; null: never. */
  readonly nextChangeAt: number | null
}

const selectWhere = (which: RawBuilder<unknown>) => sql<EntitlementsTable>`
  select environment, customer_id, product_id, active, status, since, until, next_change_at from entitlements
  where ${which}`
const selectEntitlements = lookupIn('customer_id', selectWhere)

/** By customer id, in the order of products; without customers who never had access. */
export async function loadEntitlements(
  db: Db,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly EntitlementRecord[]>> {
  const rows = await selectEntitlements(db, environment, [...new Set(customerIds)])
  const byCustomer = Map.groupBy(rows.map(recordIn), ({ customerId }) => customerId)
  for (const own of byCustomer.values()) own.sort((a, b) => compareText(a.productId, b.productId))
  return byCustomer
}

const selectKnown = inEnvironment(
  bulkStatement(
    (asked) => sql<Pick<EntitlementsTable, 'product_id'>>`
      with asked (environment, product_id) as (${asked}) select product_id from asked where exists (
        select 1 from entitlements
        where entitlements.environment = asked.environment and entitlements.product_id = asked.product_id)`,
  ),
  (productId: string) => [productId],
)

/** Those of these products that any customer has, or once had, access to. */
export async function knownProducts(
  db: Db,
  environment: Environment,
  productIds: readonly string[],
): Promise<ReadonlySet<string>> {
  return new Set((await selectKnown(db, environment, productIds)).map((row) => row.product_id))
}

const upsert = bulkUpsert('entitlements', ['environment', 'customer_id', 'product_id'])

/** Each entitlement at most once. */
export function saveEntitlements(
  trx: Tx,
  environment: Environment,
  records: readonly EntitlementRecord[],
): Promise<void> {
  const rows = records.map(({ customerId, productId, active, status, since, until, nextChangeAt }) => ({
    environment,
    customer_id: customerId,
    product_id: productId,
    active: active ? 1 : 0,
    status,
    since,
    until,
    next_change_at: nextChangeAt,
  }))
  return upsert(trx, rows)
}

export const deleteEntitlements = inEnvironment(
  bulkLookup(
    ['environment', 'customer_id', 'product_id'],
    (matches) => sql`delete from entitlements where ${matches}`,
  ),
  ({ customerId, productId }: Pick<EntitlementRecord, 'customerId' | 'productId'>) => [customerId, productId],
)

/** Whether time alone has changed it since. */
export function isDue({ nextChangeAt }: Pick<EntitlementRecord, 'nextChangeAt'>, now: number): boolean {
  return nextChangeAt !== null && nextChangeAt <= now
}

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

function recordIn(row: EntitlementsTable): EntitlementRecord {
  const { customer_id: customerId, product_id: productId, next_change_at: nextChangeAt } = row
  const { status, since, until } = row
  return { customerId, productId, active: row.active === 1, status, since, until, nextChangeAt }
}
