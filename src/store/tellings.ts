import { type Kysely, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkLookup } from './bulk.js'
import type { CustomerRecord } from './customer-facts.js'
import { loadReferences, type Reference, removeReferences, storeReferences } from './customer-references.js'
import { loadCustomers, saveCustomers } from './customers.js'
import type { Database, EventsTable } from './schema.js'

/** Of a stored event, as much as tells whether it may be about a customer or a payment. */
export type EventGlimpse = Pick<EventsTable, 'environment' | 'type' | 'customer_id' | 'payment_id'> & {
  readonly seq: number
}

/** The next stored events, in the order of arrival. */
export async function glimpseEvents(
  db: Kysely<Database>,
  beyond: number,
  limit: number,
): Promise<readonly EventGlimpse[]> {
  const { rows } = await sql<EventGlimpse>`
    select seq, environment, type, customer_id, payment_id from events
    where seq > ${beyond} order by seq limit ${limit}`.execute(db)
  return rows
}

/** Another text once anybody was erased since, or what is stored of them was removed. */
export async function erasuresMark(db: Kysely<Database>): Promise<string> {
  const { rows } =
    await sql<object>`select count(*) as begun, count(finished_at) as finished from erasures`.execute(db)
  return JSON.stringify(rows)
}

/** What all events together tell of a customer; `record` is null where none names them. */
export interface ToldPerson {
  readonly record: CustomerRecord | null
  readonly references: readonly Reference[]
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
  const changed = records.filter((record) => !isSameRecord(record, stored.get(record.customerId)))
  await saveCustomers(trx, environment, stored, changed)
  await remove(
    trx,
    [...people].flatMap(([id, { record }]) => (record === null ? [[environment, id]] : [])),
  )
  for (const [customerId, { references }] of people) {
    const known = await loadReferences(trx, environment, customerId)
    await removeReferences(trx, environment, customerId, without(known, references))
    await storeReferences(trx, environment, customerId, without(references, known))
  }
}

function isSameRecord(a: CustomerRecord, b: CustomerRecord | undefined): boolean {
  if (b === undefined || a.deletedAt !== b.deletedAt) return false
  const names = new Set([...Object.keys(a.facts), ...Object.keys(b.facts)]) as Set<keyof typeof a.facts>
  return [...names].every((name) => {
    const [one, other] = [a.facts[name], b.facts[name]]
    return one?.value === other?.value && one?.at === other?.at && one?.by === other?.by
  })
}

function without(these: readonly Reference[], those: readonly Reference[]): readonly Reference[] {
  const known = new Set(those.map(textOf))
  return these.filter((one) => !known.has(textOf(one)))
}

function textOf({ name, value }: Reference): string {
  return JSON.stringify([name, value])
}
