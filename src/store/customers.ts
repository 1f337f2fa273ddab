import type { Kysely, Selectable, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { chunkRows } from './chunk.js'
import { addFacts, type CustomerFacts, type CustomerTelling } from './customer-facts.js'
import { saveReferences } from './customer-references.js'
import { EVERY_ID, type IdPage } from './id-page.js'
import type { CustomersTable, Database } from './schema.js'

/** One person in one environment. Personal data: never logged. */
export interface CustomerRecord {
  readonly customerId: string
  readonly facts: CustomerFacts
  /** When the provider says it deleted them, in epoch milliseconds; changes no access. */
  readonly deletedAt: number | null
}

/** A detail to find customers by; an email counts in any letter case. */
export type CustomerLookup =
  | { readonly email: string }
  | { readonly communityId: string }
  | { readonly messengerId: string }

const VALUES_PER_ROW = 7

/** By customer id; a customer of whom nothing is known is not in the map. */
export async function loadCustomers(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, CustomerRecord>> {
  const found = new Map<string, CustomerRecord>()
  for (const chunk of chunkRows(customerIds, 1)) {
    const rows = await db
      .selectFrom('customers')
      .selectAll()
      .where('environment', '=', environment)
      .where('customer_id', 'in', chunk)
      .execute()
    for (const row of rows) found.set(row.customer_id, fromRow(row))
  }
  return found
}

/** The ids of the customers whose newest known detail is this one, in order. */
export async function findCustomers(
  db: Kysely<Database>,
  environment: Environment,
  lookup: CustomerLookup,
  { after, limit }: IdPage = EVERY_ID,
): Promise<readonly string[]> {
  const customers = db
    .selectFrom('customers')
    .select('customer_id')
    .where('environment', '=', environment)
    .where('customer_id', '>', after)
    .orderBy('customer_id')
    .limit(limit)
  const matching =
    'email' in lookup
      ? customers.where('email', '=', lookup.email.toLowerCase())
      : 'communityId' in lookup
        ? customers.where('community_id', '=', lookup.communityId)
        : customers.where('messenger_id', '=', lookup.messengerId)
  return (await matching.execute()).map((row) => row.customer_id)
}

/** Learns what events tell about their customers; an event that names no customer tells of none. */
export async function saveCustomerFacts(
  trx: Transaction<Database>,
  environment: Environment,
  tellings: readonly CustomerTelling[],
): Promise<void> {
  const byCustomer = new Map<string, CustomerTelling[]>()
  for (const telling of tellings) {
    if (telling.customerId === null) continue
    byCustomer.set(telling.customerId, [...(byCustomer.get(telling.customerId) ?? []), telling])
  }
  const stored = await loadCustomers(trx, environment, [...byCustomer.keys()])
  const records = [...byCustomer].map(([customerId, told]) => ({
    customerId,
    facts: told.reduce(addFacts, stored.get(customerId)?.facts ?? {}),
    deletedAt: stored.get(customerId)?.deletedAt ?? null,
  }))
  await saveCustomers(trx, environment, records)
  await saveReferences(trx, environment, tellings)
}

/** Marks customers as deleted at the provider, by the newest telling of it; what is known of them stays. */
export async function markDeleted(
  trx: Transaction<Database>,
  environment: Environment,
  deletions: readonly { readonly customerId: string; readonly at: number }[],
): Promise<void> {
  const newest = new Map<string, number>()
  for (const { customerId, at } of deletions) {
    newest.set(customerId, Math.max(at, newest.get(customerId) ?? at))
  }
  const stored = await loadCustomers(trx, environment, [...newest.keys()])
  const records = [...newest].map(([customerId, at]) => ({
    customerId,
    facts: stored.get(customerId)?.facts ?? {},
    deletedAt: Math.max(at, stored.get(customerId)?.deletedAt ?? at),
  }))
  await saveCustomers(trx, environment, records)
}

async function saveCustomers(
  trx: Transaction<Database>,
  environment: Environment,
  records: readonly CustomerRecord[],
): Promise<void> {
  for (const chunk of chunkRows(records, VALUES_PER_ROW)) {
    await trx
      .insertInto('customers')
      .values(chunk.map((record) => toRow(environment, record)))
      .onConflict((conflict) =>
        conflict.columns(['environment', 'customer_id']).doUpdateSet((eb) => ({
          facts: eb.ref('excluded.facts'),
          email: eb.ref('excluded.email'),
          community_id: eb.ref('excluded.community_id'),
          messenger_id: eb.ref('excluded.messenger_id'),
          deleted_at: eb.ref('excluded.deleted_at'),
        })),
      )
      .execute()
  }
}

function toRow(environment: Environment, { customerId, facts, deletedAt }: CustomerRecord): CustomersTable {
  return {
    environment,
    customer_id: customerId,
    facts: JSON.stringify(facts),
    email: facts.email?.value.toLowerCase() ?? null,
    community_id: facts.communityId?.value ?? null,
    messenger_id: facts.messengerId?.value ?? null,
    deleted_at: deletedAt,
  }
}

function fromRow(row: Selectable<CustomersTable>): CustomerRecord {
  return {
    customerId: row.customer_id,
    facts: JSON.parse(row.facts) as CustomerFacts,
    deletedAt: row.deleted_at,
  }
}
