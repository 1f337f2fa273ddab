import type { Kysely, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { chunkRows } from './chunk.js'
import { type CustomerTelling, type FactName, toldFacts } from './customer-facts.js'
import type { CustomerReferencesTable, Database } from './schema.js'

/** What leads from the merchant's own ids to a customer: the reference, or one metadata value. */
export type ReferenceName = 'externalRef' | `metadata.${string}`

/** The provider's own limit for a reference; a longer metadata value is text and no id. */
const MAX_REFERENCE_LENGTH = 255

const VALUES_PER_ROW = 4

/** Keeps every reference that any event of a customer carries: each of their payments may have its own. */
export async function saveReferences(
  trx: Transaction<Database>,
  environment: Environment,
  tellings: readonly CustomerTelling[],
): Promise<void> {
  const rows = tellings.flatMap((telling) => referencesOf(environment, telling))
  for (const chunk of chunkRows(rows, VALUES_PER_ROW)) {
    await trx
      .insertInto('customer_references')
      .values(chunk)
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  }
}

/** The ids of the customers whose events carry this reference, in order. */
export async function findCustomersByReference(
  db: Kysely<Database>,
  environment: Environment,
  name: ReferenceName,
  value: string,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('customer_references')
    .select('customer_id')
    .where('environment', '=', environment)
    .where('name', '=', name)
    .where('value', '=', value)
    .orderBy('customer_id')
    .execute()
  return rows.map((row) => row.customer_id)
}

function referencesOf(
  environment: Environment,
  telling: CustomerTelling,
): readonly CustomerReferencesTable[] {
  const { customerId } = telling
  if (customerId === null) return []
  return toldFacts(telling)
    .filter(([name, value]) => isReferenceName(name) && value.length <= MAX_REFERENCE_LENGTH)
    .map(([name, value]) => ({ environment, name, value, customer_id: customerId }))
}

function isReferenceName(name: FactName): name is ReferenceName {
  return name === 'externalRef' || name.startsWith('metadata.')
}
