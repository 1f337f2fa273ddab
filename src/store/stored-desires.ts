import { type Kysely, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkStatement } from './bulk.js'
import type { MembershipKey } from './membership.js'
import type { Database } from './schema.js'

interface MembershipRow {
  readonly target: string
  readonly account_id: string
  readonly customer_id: string
}

const selectByCustomer = bulkStatement(
  (keys) => sql<MembershipRow>`
    select target, account_id, customer_id from memberships where (environment, customer_id) in (${keys})`,
)

const selectByAccount = bulkStatement(
  (keys) => sql<MembershipRow & { readonly desired: number }>`
    select target, account_id, customer_id, desired from memberships
    where (environment, account_id) in (${keys})`,
)

/** The memberships that were last looked at for these customers. */
export async function loadMembershipKeysOf(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<readonly MembershipKey[]> {
  const rows = await selectByCustomer(
    db,
    customerIds.map((id) => [environment, id]),
  )
  return rows.map((row) => ({ environment, target: row.target, accountId: row.account_id }))
}

export interface StoredDesire extends MembershipKey {
  readonly customerId: string
  readonly desired: boolean
}

/** All memberships of these accounts, as they were last looked at. */
export async function loadDesiresOf(
  db: Kysely<Database>,
  environment: Environment,
  accountIds: readonly string[],
): Promise<readonly StoredDesire[]> {
  const rows = await selectByAccount(
    db,
    accountIds.map((id) => [environment, id]),
  )
  return rows.map((row) => ({
    environment,
    target: row.target,
    accountId: row.account_id,
    customerId: row.customer_id,
    desired: row.desired === 1,
  }))
}

const selectActive = bulkStatement(
  (keys) => sql<{ readonly customer_id: string; readonly product_id: string }>`
    select customer_id, product_id from entitlements where (environment, customer_id) in (${keys}) and active = 1`,
)

/** The products that each has access to, as last written down; a customer without any is not in the map. */
export async function loadActiveProducts(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await selectActive(
    db,
    customerIds.map((id) => [environment, id]),
  )
  const found = new Map<string, string[]>()
  for (const row of rows) {
    found.set(row.customer_id, [...(found.get(row.customer_id) ?? []), row.product_id])
  }
  return found
}

export async function hasMemberships(db: Kysely<Database>): Promise<boolean> {
  return (await db.selectFrom('memberships').select('target').limit(1).execute()).length > 0
}
