import { sql, type Transaction } from 'kysely'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { bulkLookup } from './bulk.js'
import type { CustomerFacts, CustomerRecord } from './customer-facts.js'
import { deleteReferences } from './customer-references.js'
import { loadCustomers, saveCustomers } from './customers.js'
import type { Database } from './schema.js'

const remove = bulkLookup(
  ['environment', 'customer_id'],
  (isTold) => sql`delete from customers where ${isTold}`,
)

/**
 * Forgets what these events told about their customers. What an event before them told is not known again by that,
 * nor a reference that another one carries too: all events of the environment have to tell again.
 */
export async function forgetTellings(
  trx: Transaction<Database>,
  environment: Environment,
  tellings: readonly NormalizedEvent[],
): Promise<void> {
  const known = await loadCustomers(trx, environment, [
    ...new Set(tellings.flatMap(({ customerId }) => customerId ?? [])),
  ])
  const told = new Set(tellings.map(({ id }) => id))
  const deletions = new Set(
    tellings.flatMap(({ type, customerId }) => (type === 'customer.deleted' ? (customerId ?? []) : [])),
  )
  const records = [...known.values()].map(
    ({ customerId, facts, deletedAt }): CustomerRecord => ({
      customerId,
      facts: withoutFactsBy(told, facts),
      deletedAt: deletions.has(customerId) ? null : deletedAt,
    }),
  )
  const gone = records.filter(({ facts, deletedAt }) => deletedAt === null && Object.keys(facts).length === 0)
  await saveCustomers(
    trx,
    environment,
    known,
    records.filter((record) => !gone.includes(record)),
  )
  await remove(
    trx,
    gone.map(({ customerId }) => [environment, customerId]),
  )
  await deleteReferences(trx, environment, tellings)
}

function withoutFactsBy(eventIds: ReadonlySet<string>, facts: CustomerFacts): CustomerFacts {
  return Object.fromEntries(
    Object.entries(facts).filter(([, fact]) => fact !== undefined && !eventIds.has(fact.by)),
  )
}
