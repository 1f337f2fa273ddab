import { type Kysely, sql, type Transaction } from 'kysely'
import { compareText } from '../entitlements/order.js'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkLookup } from './bulk.js'
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

const insert = bulkInsert(
  'customer_references',
  ['environment', 'name', 'value', 'customer_id'],
  sql`on conflict do nothing`,
)

/** Keeps every reference that any event of a customer carries: each of their payments may have its own. */
export function saveReferences(
  trx: Transaction<Database>,
  references: readonly CustomerReferencesTable[],
): Promise<void> {
  return insert(trx, references)
}

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
    select value, customer_id from customer_references where ${isTold}`,
)

/** The same for many references of one name, by value; a value that nobody has is not in the map. */
export async function findCustomersByReferences(
  db: Kysely<Database>,
  environment: Environment,
  name: string,
  values: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await selectCustomers(
    db,
    [...new Set(values)].map((value) => [environment, name, value]),
  )
  const found = new Map<string, string[]>()
  for (const row of rows.sort((a, b) => compareText(a.customer_id, b.customer_id))) {
    const known = found.get(row.value)
    if (known === undefined) found.set(row.value, [row.customer_id])
    else known.push(row.customer_id)
  }
  return found
}

/** Every reference that leads to a customer, by name, then value. */
export async function loadReferences(
  db: Kysely<Database>,
  environment: Environment,
  customerId: string,
): Promise<readonly Reference[]> {
  const rows = await db
    .selectFrom('customer_references')
    .select(['name', 'value'])
    .where('environment', '=', environment)
    // As a stretch in order: asked for one customer plainly, SQLite reads every reference there is, from the key.
    .where('customer_id', '>=', customerId)
    .where('customer_id', '<=', customerId)
    .orderBy('customer_id')
    .$narrowType<Reference>()
    .execute()
  return rows.sort((a, b) => compareText(a.name, b.name) || compareText(a.value, b.value))
}

const remove = bulkLookup(
  ['environment', 'name', 'value', 'customer_id'],
  (isTold) => sql`
    delete from customer_references where ${isTold}`,
)

export async function removeReferences(
  trx: Transaction<Database>,
  environment: Environment,
  customerId: string,
  references: readonly Reference[],
): Promise<void> {
  await remove(
    trx,
    references.map(({ name, value }) => [environment, name, value, customerId]),
  )
}

export function storeReferences(
  trx: Transaction<Database>,
  environment: Environment,
  customerId: string,
  references: readonly Reference[],
): Promise<void> {
  return insert(
    trx,
    references.map(({ name, value }) => ({ environment, name, value, customer_id: customerId })),
  )
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
