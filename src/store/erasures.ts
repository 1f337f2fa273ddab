import type { Kysely, Selectable, Transaction } from 'kysely'
import type { Environment, ManualEvent } from '../provider/event.js'
import { loadCustomers } from './customers.js'
import { forgetJoinLinks } from './join-links.js'
import type { Database, ErasuresTable } from './schema.js'
import { forgetTold } from './sources.js'
import { eventInForm } from './stored-form.js'
import { markAccountHolders } from './sync-state.js'

export interface PersonKey {
  readonly environment: Environment
  readonly customerId: string
}

/** The act by hand that erases somebody. */
export interface ErasureAct extends ManualEvent {
  readonly environment: Environment
}

/** Somebody who was erased. Instants are epoch milliseconds. */
export interface ErasureRecord extends PersonKey {
  /** The act by which they were. */
  readonly eventId: string
  readonly erasedAt: number
  /** Whether a purchase, an act or a detail of theirs was stored: if not, the id may be a wrong one. */
  readonly wasKnown: boolean
  /** When what is stored of them was gone; null: the next start, or minute, goes on. */
  readonly finishedAt: number | null
}

/** The ids of everybody who is erased, by environment. */
export type ErasedIds = ReadonlyMap<Environment, ReadonlySet<string>>

export async function loadErasedIds(db: Kysely<Database>): Promise<ErasedIds> {
  const rows = await db.selectFrom('erasures').select(['environment', 'customer_id']).execute()
  const erased = new Map<Environment, Set<string>>()
  for (const { environment, customer_id: id } of rows) {
    erased.set(environment, (erased.get(environment) ?? new Set()).add(id))
  }
  return erased
}

/** Null for somebody who is not erased. */
export async function loadErasure(
  db: Kysely<Database>,
  environment: Environment,
  customerId: string,
): Promise<ErasureRecord | null> {
  const row = await db
    .selectFrom('erasures')
    .selectAll()
    .where('environment', '=', environment)
    .where('customer_id', '=', customerId)
    .executeTakeFirst()
  return row === undefined ? null : fromRow(row)
}

/** What is stored of these people is still to be removed. */
export async function loadUnfinishedErasures(db: Kysely<Database>): Promise<readonly ErasureRecord[]> {
  const rows = await db.selectFrom('erasures').selectAll().where('finished_at', 'is', null).execute()
  return rows.map(fromRow)
}

function fromRow(row: Selectable<ErasuresTable>): ErasureRecord {
  return {
    environment: row.environment,
    customerId: row.customer_id,
    eventId: row.event_id,
    erasedAt: row.erased_at,
    wasKnown: row.was_known === 1,
    finishedAt: row.finished_at,
  }
}

/** In the transaction that stores the act: from here on, deliveries that name them are redacted. Once for each person. */
export async function saveErasures(trx: Transaction<Database>, acts: readonly ErasureAct[]): Promise<void> {
  if (acts.length === 0) return
  await trx
    .insertInto('erasures')
    .values(
      acts.map(({ environment, id, customerId, createdAt }) => ({
        environment,
        customer_id: customerId,
        event_id: id,
        erased_at: createdAt,
        was_known: 0 as const,
        finished_at: null,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/**
 * Leaves nothing of a customer but the id, and that the provider deleted them, if it did. What is stored of their
 * events is gone by then.
 */
export async function finishErasure(
  trx: Transaction<Database>,
  { environment, customerId }: PersonKey,
  hadEvents: boolean,
  now: number,
): Promise<void> {
  const known = (await loadCustomers(trx, environment, [customerId])).get(customerId)
  const wasKnown = hadEvents || Object.keys(known?.facts ?? {}).length > 0
  await forgetPerson(trx, environment, customerId)
  await trx
    .updateTable('erasures')
    .set({ finished_at: now, ...(wasKnown && { was_known: 1 }) })
    .where('environment', '=', environment)
    .where('customer_id', '=', customerId)
    .execute()
}

export async function forgetPerson(
  trx: Transaction<Database>,
  environment: Environment,
  customerId: string,
): Promise<void> {
  // What was given to their platform accounts is to be taken back, or stays another customer's.
  await markAccountHolders(trx, environment, [customerId])
  await forgetTold(trx, environment, [customerId])
  await trx
    .updateTable('customers')
    .set({ facts: '{}', email: null, community_id: null, messenger_id: null })
    .where('environment', '=', environment)
    .where('customer_id', '=', customerId)
    .execute()
  await trx
    .deleteFrom('customer_references')
    .where('environment', '=', environment)
    // As a range: with a plain comparison, SQLite reads every reference there is, from the key.
    .where('customer_id', '>=', customerId)
    .where('customer_id', '<=', customerId)
    .execute()
  await forgetJoinLinks(trx, environment, customerId)
}

/** Those whom the provider says it deleted, and who are not erased. */
export async function loadDeletedUnerased(
  db: Kysely<Database>,
  limit: number,
): Promise<readonly PersonKey[]> {
  const rows = await db
    .selectFrom('customers')
    .select(['environment', 'customer_id'])
    .where('deleted_at', 'is not', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('erasures')
            .select('erasures.event_id')
            .whereRef('erasures.environment', '=', 'customers.environment')
            .whereRef('erasures.customer_id', '=', 'customers.customer_id'),
        ),
      ),
    )
    .limit(limit)
    .execute()
  return rows.map((row) => ({ environment: row.environment, customerId: row.customer_id }))
}

/** Every act that erased somebody, oldest first. */
export async function loadErasureActs(db: Kysely<Database>): Promise<readonly ErasureAct[]> {
  const rows = await db
    .selectFrom('erasures')
    .innerJoin('events', (join) =>
      join
        .onRef('events.environment', '=', 'erasures.environment')
        .onRef('events.event_id', '=', 'erasures.event_id'),
    )
    .select(['events.environment', 'events.event_id', 'events.normalized'])
    .orderBy('erasures.erased_at')
    .execute()
  return rows.flatMap(({ environment, event_id: eventId, normalized }) => {
    const event = eventInForm(String(normalized), eventId)
    return event.subject === 'manual' ? [{ ...event, environment }] : []
  })
}
