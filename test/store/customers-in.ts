import type { Kysely } from 'kysely'
import { loadCustomer } from '../../src/store/customers.js'
import type { Database } from '../../src/store/schema.js'

/** Every customer, as it is told of them, with what they are found by. */
export async function customersIn(db: Kysely<Database>) {
  const rows = await db
    .selectFrom('customers')
    .select(['environment', 'customer_id', 'email', 'community_id', 'messenger_id', 'deleted_at'])
    .orderBy('environment')
    .orderBy('customer_id')
    .execute()
  return Promise.all(
    rows.map(async (row) => ({
      ...row,
      facts: (await loadCustomer(db, row.environment, row.customer_id))?.facts,
    })),
  )
}
