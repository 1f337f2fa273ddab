import type { Kysely } from 'kysely'
import type { Entitlement } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import type { ReadAccesses } from './access-reader.js'
import type { IdPage } from './keys.js'
import type { Database } from './schema.js'

export interface ProductCustomersQuery extends IdPage {
  readonly environment: Environment
  readonly productId: string
}

export interface ProductCustomer {
  readonly customerId: string
  readonly entitlement: Entitlement
}

/** Those with access to one product now, in the order of their ids. */
export type ReadProductCustomers = (query: ProductCustomersQuery) => Promise<readonly ProductCustomer[]>

/**
 * Reads them from what was written down last, and asks the clock about each: an end that has passed since shows.
 * The clock alone only ever ends access, so nobody is missing from what was written down.
 */
export function createProductCustomersReader(
  db: Kysely<Database>,
  readAccesses: ReadAccesses,
): ReadProductCustomers {
  return async ({ environment, productId, after, limit }) => {
    const found: ProductCustomer[] = []
    let candidates: readonly string[]
    let last = after
    do {
      candidates = await loadWrittenActive(db, { environment, productId, after: last, limit })
      last = candidates.at(-1) ?? last
      const answers = await readAccesses({ environment, customerIds: candidates, at: null })
      for (const { customerId, entitlements } of answers) {
        const entitlement = entitlements.find((one) => one.productId === productId)
        if (entitlement?.active) found.push({ customerId, entitlement })
      }
    } while (found.length < limit && candidates.length === limit)
    return found.slice(0, limit)
  }
}

/** Those who had access to the product when it was last written down, in the order of their ids. */
export async function loadWrittenActive(
  db: Kysely<Database>,
  { environment, productId, after, limit }: ProductCustomersQuery,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('entitlements')
    .select('customer_id')
    .where('environment', '=', environment)
    .where('product_id', '=', productId)
    .where('active', '=', 1)
    .where('customer_id', '>', after)
    .orderBy('customer_id')
    .limit(limit)
    .execute()
  return rows.map((row) => row.customer_id)
}
