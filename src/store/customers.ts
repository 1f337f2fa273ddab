import { type Kysely, sql, type Transaction } from 'kysely'
import { compareText } from '../entitlements/order.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkUpsert } from './bulk.js'
import { addFacts, type CustomerFacts, type CustomerRecord, type CustomerTelling } from './customer-facts.js'
import { saveReferences } from './customer-references.js'
import { EVERY_ID, type IdPage } from './keys.js'
import { markAccountHolders } from './mark-account-holders.js'
import type { CustomersTable, Database } from './schema.js'

/** A detail to find customers by; an email counts in any letter case. */
export type CustomerLookup =
  | { readonly email: string }
  | { readonly communityId: string }
  | { readonly messengerId: string }

/** The facts that memberships hang on. */
const ACCOUNTS = ['communityId', 'messengerId'] as const
/** The facts that customers are found by. */
const LOOKUPS = ['email', ...ACCOUNTS] as const

const selectCustomers = bulkLookup(
  ['environment', 'customer_id'],
  (isTold) => sql<CustomersTable>`select * from customers where ${isTold}`,
)

/** By customer id; a customer of whom nothing is known is not in the map. */
export async function loadCustomers(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, CustomerRecord>> {
  const rows = await selectCustomers(
    db,
    customerIds.map((id) => [environment, id]),
  )
  return new Map(rows.map((row) => [row.customer_id, fromRow(row)]))
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
  const records = [...byCustomer].flatMap(([customerId, told]) => {
    const known = stored.get(customerId)
    const facts = told.reduce(addFacts, known?.facts ?? {})
    return facts === known?.facts ? [] : [{ customerId, facts, deletedAt: known?.deletedAt ?? null }]
  })
  await saveCustomers(trx, environment, stored, records)
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
  await saveCustomers(trx, environment, stored, records)
}

const KEY = ['environment', 'customer_id'] as const
const COLUMNS = ['facts', 'email', 'community_id', 'messenger_id', 'deleted_at'] as const

/** Most events tell again what is known: setting that anew would write the indexes as well, a page for each. */
const upsertFacts = bulkUpsert('customers', KEY, COLUMNS, { updating: ['facts', 'deleted_at'] })
const upsertAll = bulkUpsert('customers', KEY, COLUMNS)

/** @param stored what is known of them, by customer id */
export async function saveCustomers(
  trx: Transaction<Database>,
  environment: Environment,
  stored: ReadonlyMap<string, CustomerRecord>,
  records: readonly CustomerRecord[],
): Promise<void> {
  const isAsBefore = (names: readonly (keyof CustomerFacts)[], record: CustomerRecord): boolean => {
    const known = stored.get(record.customerId)
    return names.every((name) => known?.facts[name]?.value === record.facts[name]?.value)
  }
  const isFoundAsBefore = (record: CustomerRecord) => isAsBefore(LOOKUPS, record)
  const relinked = records.filter((record) => !isAsBefore(ACCOUNTS, record))
  await markAccountHolders(
    trx,
    environment,
    relinked.map(({ customerId }) => customerId),
  )
  const row = (record: CustomerRecord) => toRow(environment, record)
  await upsertFacts(trx, records.filter(isFoundAsBefore).map(row))
  await upsertAll(trx, records.filter((record) => !isFoundAsBefore(record)).map(row))
}

function toRow(environment: Environment, { customerId, facts, deletedAt }: CustomerRecord): CustomersTable {
  return {
    environment,
    customer_id: customerId,
    facts: textOf(facts),
    email: facts.email?.value.toLowerCase() ?? null,
    community_id: facts.communityId?.value ?? null,
    messenger_id: facts.messengerId?.value ?? null,
    deleted_at: deletedAt,
  }
}

/** The same facts are the same text, in whatever order they came. */
function textOf(facts: CustomerFacts): string {
  const inOrder = Object.entries(facts).sort(([a], [b]) => compareText(a, b))
  return JSON.stringify(Object.fromEntries(inOrder))
}

function fromRow(row: CustomersTable): CustomerRecord {
  return {
    customerId: row.customer_id,
    facts: JSON.parse(row.facts) as CustomerFacts,
    deletedAt: row.deleted_at,
  }
}
