import { type Kysely, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkLookup } from './bulk.js'
import type { CustomerRecord } from './customer-facts.js'
import { loadReferences, type Reference, removeReferences, storeReferences } from './customer-references.js'
import { loadCustomers, saveCustomers } from './customers.js'
import type { Database } from './schema.js'

/** Another text once anybody was erased since, or what is stored of them was removed. */
export async function erasuresMark(db: Kysely<Database>): Promise<string> {
  const { rows } =
    await sql<object>`select count(*) as begun, count(finished_at) as finished from erasures`.execute(db)
  return JSON.stringify(rows)
}

/** What all events together say of a customer; `record` is null where none names them. */
export interface ToldPerson {
  readonly record: CustomerRecord | null
  /** By `referenceKey`. */
  readonly references: Map<string, Reference>
}

export function referenceKey({ name, value }: Reference): string {
  return JSON.stringify([name, value])
}

const remove = bulkLookup(
  ['environment', 'customer_id'],
  (isTold) => sql`delete from customers where ${isTold}`,
)

/** Writes down of these customers what is told of them, and no more. By customer id. */
export async function replacePeople(
  trx: Transaction<Database>,
  environment: Environment,
  people: ReadonlyMap<string, ToldPerson>,
): Promise<void> {
  const stored = await loadCustomers(trx, environment, [...people.keys()])
  const records = [...people].map(
    ([customerId, { record }]) => record ?? { customerId, facts: {}, deletedAt: null },
  )
  // Saved first where nobody names them, too: that marks who holds their accounts.
  await saveCustomers(trx, environment, stored, records)
  const unnamed = [...people].filter(([, { record }]) => record === null)
  await remove(
    trx,
    unnamed.map(([customerId]) => [environment, customerId]),
  )
  for (const [customerId, { references }] of people) {
    const known = await loadReferences(trx, environment, customerId)
    const gone = known.filter((reference) => !references.has(referenceKey(reference)))
    await removeReferences(trx, environment, customerId, gone)
    await storeReferences(trx, environment, customerId, [...references.values()])
  }
}
