import { type Kysely, sql } from 'kysely'
import { compareText } from '../entitlements/order.js'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkLookup, lookupIn } from './bulk.js'
import { type CustomerTelling, type FactName, toldFacts } from './customer-facts.js'
import { EVERY_ID, type IdPage } from './keys.js'
import type { CustomerReferencesTable, Database } from './schema.js'

/** What leads from the merchant's own ids to a customer: the reference, or one metadata value. */
export type ReferenceName = 'externalRef' | `metadata.${string}`

/** One of them. */
export interface Reference {
  readonly name: ReferenceName
  readonly value: string
}

/** The provider's own limit for a reference; a longer metadata value is text and no id. */
const MAX_REFERENCE_LENGTH = 255

/** Keeps every reference that any event of a customer carries: each of their payments may have its own. */
export const saveReferences = bulkInsert(
  'customer_references',
  ['environment', 'name', 'value', 'customer_id'],
  sql`on conflict do nothing`,
)

export const deleteReferences = lookupIn(
  'customer_id',
  (isTheirs) => sql`delete from customer_references where ${isTheirs}`,
)

const selectReferences = lookupIn(
  'customer_id',
  (isTheirs) => sql<Reference>`select name, value from customer_references where ${isTheirs}`,
)

/** The ids of the customers whose events carry this reference, in order; none where no event has one of that name. */
export async function findCustomersByReference(
  db: Kysely<Database>,
  environment: Environment,
  name: string,
  value: string,
  { after, limit }: IdPage = EVERY_ID,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('customer_references')
    .select('customer_id')
    .where('environment', '=', environment)
    .where('name', '=', name)
    .where('value', '=', value)
    .where('customer_id', '>', after)
    .orderBy('customer_id')
    .limit(limit)
    .execute()
  return rows.map((row) => row.customer_id)
}

const selectCustomers = bulkLookup(
  ['environment', 'name', 'value'],
  (isTold) => sql<Pick<CustomerReferencesTable, 'value' | 'customer_id'>>`
    select value, customer_id from customer_references where ${isTold} order by customer_id`,
)

/** The same for many references of one name, by value; a value that nobody has is not in the map. */
export async function findCustomersByReferences(
  db: Kysely<Database>,
  environment: Environment,
  name: string,
  values: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const asked = [...new Set(values)].map((value) => [environment, name, value])
  const byValue = Map.groupBy(await selectCustomers(db, asked), ({ value }) => value)
  return new Map([...byValue].map(([value, rows]) => [value, rows.map((row) => row.customer_id)]))
}

/** Every reference that leads to a customer, by name, then value. */
export async function loadReferences(
  db: Kysely<Database>,
  environment: Environment,
  customerId: string,
): Promise<readonly Reference[]> {
  // Sorted here: asked for them in order, SQLite reads every reference there is, from the key.
  const rows = await selectReferences(db, environment, [customerId])
  return rows.sort((a, b) => compareText(a.name, b.name) || compareText(a.value, b.value))
}

/** The references that an event carries. */
export function referencesIn(telling: CustomerTelling): readonly Reference[] {
  return toldFacts(telling).flatMap(([name, value]) =>
    isReferenceName(name) && value.length <= MAX_REFERENCE_LENGTH ? [{ name, value }] : [],
  )
}

function isReferenceName(name: FactName): name is ReferenceName {
  return name === 'externalRef' || name.startsWith('metadata.')
}
