import type { Kysely } from 'kysely'
import { compareText } from '../../src/provider/order.js'
import { loadCustomer } from '../../src/store/customers.js'
import type { Database } from '../../src/store/schema.js'
import { readHistory } from '../../src/store/sources.js'

/** Every customer, as it is told of them, with what they are found by. */
export async function customersIn(db: Kysely<Database>) {
  const rows = await db
    .selectFrom('customers')
    .select(['environment', 'customer_id', 'deleted_at'])
    .orderBy('environment')
    .orderBy('customer_id')
    .execute()
  const lookups = await db.selectFrom('customer_lookups').selectAll().execute()
  return Promise.all(
    rows.map(async (row) => ({
      ...row,
      foundBy: lookups.filter(
        (one) => one.environment === row.environment && one.customer_id === row.customer_id,
      ),
      facts: (await loadCustomer(db, row.environment, row.customer_id))?.facts,
    })),
  )
}

/** Of `sources`, all but their numbers: deliveries in another order have sources come to be in another order. */
export const SOURCE_COLUMNS = [
  'environment',
  'kind',
  'source_id',
  'customer_id',
  'state',
  'history',
  'newest_at',
] as const

/** The events of a history without their numbers, for the same reason. */
export function eventsIn(history: string) {
  const events = readHistory({ history }).map(({ seq: _, ...event }) => event)
  return events.sort((a, b) => compareText(a.id, b.id))
}
