import { type Kysely, sql } from 'kysely'
import { unpackHistory } from '../entitlements/history.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { bulkLookup } from './bulk.js'
import type { Database, EventsTable, SourcesTable } from './schema.js'
import { eventInFormIfReadable } from './stored-form.js'

const selectHistories = bulkLookup(
  ['environment', 'customer_id'],
  (isOfCustomer) => sql<Pick<SourcesTable, 'history' | 'newest_at'>>`
    select history, newest_at from sources where ${isOfCustomer}`,
)

const selectForms = bulkLookup(
  ['seq'],
  (isAsked) => sql<Pick<EventsTable, 'normalized'>>`select normalized from events where ${isAsked}`,
)

/**
 * The events that name a customer, of the sources that are theirs, in no order.
 * @param since leaves out what happened before (epoch milliseconds)
 */
export async function loadTellings(
  db: Kysely<Database>,
  environment: Environment,
  customerId: string,
  since = Number.NEGATIVE_INFINITY,
): Promise<readonly NormalizedEvent[]> {
  const sources = await selectHistories(db, [[environment, customerId]])
  const seqs = sources
    .filter(({ newest_at: newestAt }) => newestAt >= since)
    .flatMap(({ history }) => unpackHistory(history) ?? [])
    .filter((event) => event.customerId === customerId && event.createdAt >= since)
    .map(({ seq }) => seq)
  return (await loadForms(db, seqs)).filter((event) => event.customerId === customerId)
}

/** Events by their numbers; one that can't be read, or was removed, is not among them. */
export async function loadForms(
  db: Kysely<Database>,
  seqs: readonly number[],
): Promise<readonly NormalizedEvent[]> {
  const rows = await selectForms(
    db,
    seqs.map((seq) => [seq]),
  )
  return rows.flatMap(({ normalized }) => {
    const event = normalized === null ? null : eventInFormIfReadable(normalized)
    return event === null ? [] : [event]
  })
}
