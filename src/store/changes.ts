import type { Kysely, Selectable, Transaction } from 'kysely'
import type { EntitlementStatus } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { bulkInsert } from './bulk.js'
import type { ChangesTable, Database } from './schema.js'

/** What an entitlement says at one instant; never granted: inactive, `none`. */
export interface AccessSnapshot {
  readonly active: boolean
  readonly status: EntitlementStatus
  readonly since: number | null
  readonly until: number | null
}

/** One change of one entitlement, by an event, by the clock alone, or by reading all events anew. */
export interface NewChange {
  /** When it was written, in epoch milliseconds. */
  readonly at: number
  readonly environment: Environment
  readonly customerId: string
  readonly productId: string
  readonly before: AccessSnapshot
  readonly after: AccessSnapshot
  readonly cause: { readonly kind: ChangesTable['cause_kind']; readonly eventId: string | null }
}

export interface Change extends NewChange {
  /** Rises with every change, and is never given twice. */
  readonly cursor: number
}

const insert = bulkInsert('changes', [
  'at',
  'environment',
  'customer_id',
  'product_id',
  'before',
  'after',
  'cause_kind',
  'cause_event_id',
])

/** Appends in the order given. */
export function appendChanges(trx: Transaction<Database>, changes: readonly NewChange[]): Promise<void> {
  return insert(trx, changes.map(toRow))
}

/** The changes after a cursor, oldest first. */
export async function loadChanges(
  db: Kysely<Database>,
  environment: Environment,
  after: number,
  limit: number,
): Promise<readonly Change[]> {
  const rows = await db
    .selectFrom('changes')
    .selectAll()
    .where('environment', '=', environment)
    .where('cursor', '>', after)
    .orderBy('cursor')
    .limit(limit)
    .execute()
  return rows.map(changeOf)
}

/** The changes after a cursor, of both environments, oldest first. */
export async function loadAllChanges(
  db: Kysely<Database>,
  after: number,
  limit: number,
): Promise<readonly Change[]> {
  const rows = await db
    .selectFrom('changes')
    .selectAll()
    .where('cursor', '>', after)
    .orderBy('cursor')
    .limit(limit)
    .execute()
  return rows.map(changeOf)
}

/** The newest change of all environments; 0 before the first. */
export async function latestCursor(db: Kysely<Database>): Promise<number> {
  const row = await db
    .selectFrom('changes')
    .select('cursor')
    .orderBy('cursor', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.cursor ?? 0
}

function toRow(change: NewChange) {
  return {
    at: change.at,
    environment: change.environment,
    customer_id: change.customerId,
    product_id: change.productId,
    before: JSON.stringify(change.before),
    after: JSON.stringify(change.after),
    cause_kind: change.cause.kind,
    cause_event_id: change.cause.eventId,
  }
}

export function changeOf(row: Selectable<ChangesTable>): Change {
  return {
    cursor: row.cursor,
    at: row.at,
    environment: row.environment,
    customerId: row.customer_id,
    productId: row.product_id,
    before: JSON.parse(row.before) as AccessSnapshot,
    after: JSON.parse(row.after) as AccessSnapshot,
    cause: { kind: row.cause_kind, eventId: row.cause_event_id },
  }
}
