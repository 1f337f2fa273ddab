import { type Selectable, sql } from 'kysely'
import { storedLookup } from '../../migrations/lookup-value.js'
import { unpackHistory } from '../entitlements/history.js'
import { ACCOUNT_FACTS, SEARCH_NAMES } from '../provider/accounts.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import {
  addFacts,
  type CustomerFacts,
  type FactName,
  isKnown,
  type PersonalFields,
  type Reference,
  referencesIn,
} from '../provider/facts.js'
import { compareText } from '../provider/order.js'
import { bulkInsert, bulkLookup, bulkUpsert, lookupAs, lookupIn, pipelined } from './bulk.js'
import {
  type CustomerReferencesTable,
  type CustomersTable,
  type Db,
  EVERY_ID,
  type EventsTable,
  type PersonKey,
  type SourcesTable,
  type Tx,
} from './schema.js'
import { eventInFormIfReadable } from './stored-form.js'
import { markForSync } from './sync-state.js'

/** By customer id; unknown customers are not in the map. */
export const loadCustomers = lookupAs(
  'customer_id',
  sql<CustomersTable>`select * from customers where`,
  (rows): ReadonlyMap<string, CustomerRecord> =>
    new Map(
      rows.map(({ customer_id: customerId, facts, deleted_at: deletedAt }) => {
        return [customerId, { customerId, facts: JSON.parse(facts) as CustomerFacts, deletedAt }]
      }),
    ),
)

export interface NamingEvent {
  readonly event: PersonalFields & Pick<NormalizedEvent, 'type'>
  /** Whether it belongs to a source of the customer it names: then `loadOwnEvents` finds it. */
  readonly isOfOwnSource: boolean
}

/** What events change about customers: what was known of them, and what to save. */
export interface LearntFacts {
  readonly stored: ReadonlyMap<string, CustomerRecord>
  readonly records: readonly CustomerRecord[]
  readonly references: readonly CustomerReferencesTable[]
}

/**
 * Learns facts about customers from new events; events without a customer are skipped.
 *
 * Nearly every event repeats known facts. A repetition in a source of the customer's own is not stored: the values are
 * right, but `at` and `by` may be those of an earlier event with the same fact. If the value differs, the events
 * themselves decide which is the newest.
 * @param ownEvents the events that name a customer, from the customer's own sources, with the new ones; from an instant
 * on (epoch milliseconds)
 */
export async function learnFacts(
  environment: Environment,
  namingEvents: readonly NamingEvent[],
  load: (customerIds: readonly string[]) => Promise<ReadonlyMap<string, CustomerRecord>>,
  ownEvents: (customerId: string, since: number) => Promise<readonly NormalizedEvent[]>,
): Promise<LearntFacts> {
  const byCustomer = Map.groupBy(namingEvents, ({ event }) => event.customerId)
  const named = [...byCustomer.keys()].filter((id) => id !== null)
  const stored = await load(named)
  const records: CustomerRecord[] = []
  const references: CustomerReferencesTable[] = []
  for (const customerId of named) {
    const known = stored.get(customerId) ?? { customerId, facts: {}, deletedAt: null }
    let { facts, deletedAt } = known
    let since = Number.POSITIVE_INFINITY
    for (const { event, isOfOwnSource } of byCustomer.get(customerId) ?? []) {
      if (isOfOwnSource && isKnown(event, facts)) continue
      const before = facts
      facts = addFacts(facts, event, !isOfOwnSource)
      if (replacesAny(before, facts)) since = Math.min(since, event.createdAt)
      if (event.type === 'customer.deleted')
        deletedAt = Math.max(deletedAt ?? event.createdAt, event.createdAt)
      for (const { name, value } of referencesIn(event)) {
        if (known.facts[name]?.value !== value) {
          references.push({ environment, name, value, customer_id: customerId })
        }
      }
    }
    if (since < Number.POSITIVE_INFINITY) {
      for (const event of await ownEvents(customerId, since)) facts = addFacts(facts, event)
    }
    const isNews = facts !== known.facts || deletedAt !== known.deletedAt || !stored.has(customerId)
    if (isNews) records.push({ customerId, facts, deletedAt })
  }
  return { stored, records, references }
}

export async function saveFacts(trx: Tx, environment: Environment, learnt: LearntFacts): Promise<void> {
  await saveCustomers(trx, environment, learnt.stored, learnt.records)
  await saveReferences(trx, learnt.references)
}

function replacesAny(before: CustomerFacts, after: CustomerFacts): boolean {
  return (Object.keys(before) as FactName[]).some((name) => before[name]?.value !== after[name]?.value)
}

/** A customer with the newest event for each fact; undefined if nothing is known. */
export async function loadCustomer(db: Db, environment: Environment, customerId: string) {
  const record = (await loadCustomers(db, environment, [customerId])).get(customerId)
  if (record === undefined) return undefined
  const namingEvents = await loadOwnEvents(db, environment, customerId)
  return { ...record, facts: namingEvents.reduce((facts, event) => addFacts(facts, event), record.facts) }
}

const upsertCustomers = bulkUpsert('customers', ['environment', 'customer_id'])

const LOOKUP_KEY = ['environment', 'name', 'value', 'customer_id'] as const
const insertLookups = bulkInsert('customer_lookups', () => sql`on conflict do nothing`)
const deleteLookups = bulkLookup(LOOKUP_KEY, sql`delete from customer_lookups where`)

const markHolders = bulkLookup(
  ['environment', 'name', 'value'],
  sql`insert into sync_marks (environment, customer_id)
    select environment, customer_id from customer_lookups where`,
)

/**
 * Marks every customer whose accounts change, and those who share a lost one: one may keep a membership that another
 * loses.
 * @param stored the known facts, by customer id
 */
export async function saveCustomers(
  trx: Tx,
  environment: Environment,
  stored: ReadonlyMap<string, CustomerRecord>,
  records: readonly CustomerRecord[],
): Promise<void> {
  const lost: CustomerReferencesTable[] = []
  const gained: CustomerReferencesTable[] = []
  for (const { customerId, facts } of records) {
    const known = stored.get(customerId)?.facts
    for (const name of SEARCH_NAMES) {
      const [before, after] = [known?.[name]?.value, facts[name]?.value]
      if (before === after) continue
      const row = (value: string) => {
        return { environment, name, value: lookupValue(name, value), customer_id: customerId }
      }
      if (before !== undefined) lost.push(row(before))
      if (after !== undefined) gained.push(row(after))
    }
  }
  const isAccount = ({ name }: CustomerReferencesTable) => ACCOUNT_FACTS.some((fact) => fact === name)
  const keyOf = (row: CustomerReferencesTable) => LOOKUP_KEY.map((column) => row[column])
  const relinked = new Set([...lost, ...gained].filter(isAccount).map((row) => row.customer_id))
  const marks = [...relinked].map((customerId) => ({ environment, customerId }))
  const lostAccounts = lost.filter(isAccount).map(({ name, value }) => [environment, name, value])
  const rows = records.map(({ customerId, facts, deletedAt }) => {
    return { environment, customer_id: customerId, facts: textOf(facts), deleted_at: deletedAt }
  })
  await markForSync(trx, marks)
  await deleteLookups(trx, lost.map(keyOf))
  await markHolders(trx, lostAccounts)
  await pipelined([upsertCustomers(trx, rows), insertLookups(trx, gained)])
}

/** As it is stored and looked for: the case of an email or a user name does not matter. */
export function lookupValue(name: string, value: string): string {
  return storedLookup(name === 'email' || name.endsWith('Username') ? value.toLowerCase() : value)
}

/** The same facts give the same text, in any order of arrival. */
function textOf(facts: CustomerFacts): string {
  const inOrder = Object.entries(facts).sort(([a], [b]) => compareText(a, b))
  return JSON.stringify(Object.fromEntries(inOrder))
}

/** The histories of a customer's sources. */
export const loadHistoriesOf = lookupIn(
  'customer_id',
  sql<Pick<SourcesTable, 'kind' | 'source_id' | 'history' | 'newest_at'>>`
    select kind, source_id, history, newest_at from sources where`,
)

const selectForms = bulkLookup(
  ['seq'],
  sql<Pick<Selectable<EventsTable>, 'seq' | 'normalized'>>`select seq, normalized from events where`,
)

/** The events that name a customer, from the customer's own sources, unordered. */
async function loadOwnEvents(db: Db, environment: Environment, customerId: string) {
  const sources = await loadHistoriesOf(db, environment, [customerId])
  const seqs = sources
    .flatMap(({ history }) => unpackHistory(history) ?? [])
    .filter((event) => event.customerId === customerId)
    .map(({ seq }) => seq)
  const forms = await loadForms(db, seqs)
  return [...forms.values()].filter((event) => event.customerId === customerId)
}

/** Events by number; unreadable and removed ones are left out. */
export async function loadForms(db: Db, seqs: readonly number[]) {
  const rows = await selectForms(
    db,
    seqs.map((seq) => [seq]),
  )
  const events = rows.map(
    ({ seq, normalized }) => [seq, normalized && eventInFormIfReadable(normalized)] as const,
  )
  return new Map(events.flatMap(([seq, event]) => (event ? [[seq, event] as const] : [])))
}

const deleteCustomers = lookupIn('customer_id', sql`delete from customers where`)

/** Stores exactly these facts about a customer. @param record null: no event names them */
export async function replacePerson(
  trx: Tx,
  { environment, customerId }: PersonKey,
  record: CustomerRecord | null,
  references: readonly Reference[],
): Promise<void> {
  const stored = await loadCustomers(trx, environment, [customerId])
  // Saved even if no event names them: saving marks the other customers of their accounts.
  await saveCustomers(trx, environment, stored, [record ?? { customerId, facts: {}, deletedAt: null }])
  if (record === null) await deleteCustomers(trx, environment, [customerId])
  await deleteReferences(trx, environment, [customerId])
  const rows = references.map((one) => ({ ...one, environment, customer_id: customerId }))
  await saveReferences(trx, rows)
}

/** One person in one environment. Personal data: never logged. */
export interface CustomerRecord {
  readonly customerId: string
  readonly facts: CustomerFacts
  /** When the provider reported their deletion, in epoch milliseconds; changes no access. */
  readonly deletedAt: number | null
}

/** Keeps every reference in any event of a customer: each of their payments may have its own. */
const saveReferences = bulkInsert('customer_references', () => sql`on conflict do nothing`)

export const deleteReferences = lookupIn('customer_id', sql`delete from customer_references where`)

/** Finds customers by a detail or reference. */
function finderIn(table: 'customer_references' | 'customer_lookups') {
  type Sought = Pick<CustomerReferencesTable, 'name' | 'value'>
  return async (db: Db, environment: Environment, { name, value }: Sought, page = EVERY_ID) => {
    const { rows } = await sql<Pick<CustomerReferencesTable, 'customer_id'>>`
      select customer_id from ${sql.table(table)} where environment = ${environment} and name = ${name}
        and value = ${lookupValue(name, value)} and customer_id > ${page.after}
      order by customer_id limit ${page.limit}`.execute(db)
    return rows.map((row) => row.customer_id)
  }
}

/** The ids of the customers whose newest detail is this one, in order. */
export const findCustomers = finderIn('customer_lookups')
/** The ids of the customers whose events have this reference, in order; none if no event has one of that name. */
export const findCustomersByReference = finderIn('customer_references')

const selectReferred = bulkLookup(
  ['environment', 'name', 'value'],
  (matches) => sql<Pick<CustomerReferencesTable, 'value' | 'customer_id'>>`
    select value, customer_id from customer_references where ${matches} order by customer_id`,
)

/** The same for many references of one name, by value; values without a customer are not in the map. */
export async function findCustomersByReferences(
  db: Db,
  environment: Environment,
  name: string,
  values: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const asked = [...new Set(values)].map((value) => [environment, name, value])
  const byValue = Map.groupBy(await selectReferred(db, asked), ({ value }) => value)
  return new Map([...byValue].map(([value, rows]) => [value, rows.map((row) => row.customer_id)]))
}

/** Every reference of these customers, by name, then value. */
export const loadReferences = lookupAs(
  'customer_id',
  sql<Reference>`select name, value from customer_references where`,
  // Sorted here: for `order by`, SQLite would read all references of the store through the key.
  (rows) => rows.sort((a, b) => compareText(a.name, b.name) || compareText(a.value, b.value)),
)
