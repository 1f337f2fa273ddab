import { type Kysely, sql, type Transaction } from 'kysely'
import { foldBlocks, foldErasures } from '../entitlements/by-hand.js'
import type { Block, Erasure } from '../entitlements/model.js'
import type { Environment, ManualEvent } from '../provider/event.js'
import { lookupIn } from './bulk.js'
import type { Database } from './schema.js'
import { eventInForm } from './stored-form.js'

/** The condition on the type is exactly that of a partial index. */
const selectManualEvents = lookupIn(
  'customer_id',
  (matches) => sql<{ event_id: string; normalized: string }>`
    select event_id, normalized from events where ${matches} and type like 'manual.%'`,
)

/** All changes by hand to these customers, by customer id, unordered: folding sorts them. */
export async function loadManualEvents(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly ManualEvent[]>> {
  const found = new Map<string, ManualEvent[]>(customerIds.map((id) => [id, []]))
  const rows = await selectManualEvents(db, environment, [...found.keys()])
  for (const { event_id: eventId, normalized } of rows) {
    const event = eventInForm(normalized, eventId)
    // A provider's event may have any type; changes by hand are recognised by their subject.
    if (event.subject === 'manual') found.get(event.customerId)?.push(event)
  }
  return found
}

/** Changes by hand to a customer, except grants. */
export interface ActsOnCustomer {
  readonly blocks: readonly Block[]
  readonly erasures: readonly Erasure[]
}

export const NO_ACTS: ActsOnCustomer = { blocks: [], erasures: [] }

/**
 * Every block and erasure of these customers, by customer id. Few customers have any, and only a few events each: they
 * are folded for each question, so that no stored state can disagree with the events.
 */
export async function loadActsOn(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, ActsOnCustomer>> {
  const events = await loadManualEvents(db, environment, customerIds)
  return new Map(
    [...events].map(([id, own]) => [id, { blocks: foldBlocks(own), erasures: foldErasures(own) }]),
  )
}

/** One change by hand; null if no event with this id is stored. */
export async function loadManualEvent(
  db: Kysely<Database>,
  environment: Environment,
  eventId: string,
): Promise<ManualEvent | null> {
  const row = await db
    .selectFrom('events')
    .select('normalized')
    .where('environment', '=', environment)
    .where('event_id', '=', eventId)
    .executeTakeFirst()
  const event = row?.normalized == null ? null : eventInForm(row.normalized, eventId)
  return event?.subject === 'manual' ? event : null
}

/** `createdAt` of the newest event by hand of a customer; 0: there is none. */
export async function newestManualAt(
  trx: Transaction<Database>,
  environment: Environment,
  customerId: string,
): Promise<number> {
  const events = (await loadManualEvents(trx, environment, [customerId])).get(customerId) ?? []
  return Math.max(0, ...events.map(({ createdAt }) => createdAt))
}
