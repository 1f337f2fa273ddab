import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import { unpackHistory } from '../entitlements/history.js'
import type { SourceKey } from '../entitlements/model.js'
import type { BodyRemovalReason } from '../entitlements/stored-event.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { isAltered } from './body-as-it-came.js'
import type { Database, EventConflictsTable } from './schema.js'
import { loadSources, readHistory } from './sources.js'
import { eventInForm, formOf } from './stored-form.js'

/** A stored event with its bytes, and whose it is. */
export interface StoredBody {
  readonly seq: number
  readonly environment: Environment
  readonly eventId: string
  /** Whether it was done by hand: then its event is its body. */
  readonly isByHand: boolean
  /** Null: it is there no more. */
  readonly body: Buffer | null
  /** Whether the body is not the one that came, though nobody has removed or rewritten it. */
  readonly isAltered: boolean
  /** Null where quarantined. */
  readonly event: NormalizedEvent | null
  /** The customer whom the event names, else the one whose source it belongs to. */
  readonly customerId: string | null
}

/** What is to stand in the place of a body, and of what the event was read as. */
export interface RewrittenBody {
  readonly body: Buffer | null
  /** Null: the body stays as it is. */
  readonly why: BodyRemovalReason | null
  readonly event: NormalizedEvent | null
}

/** In the order of arrival. */
export async function loadStoredBodies(
  db: Kysely<Database>,
  seqs: readonly number[],
): Promise<readonly StoredBody[]> {
  const rows = await db
    .selectFrom('events')
    .leftJoin('sources', (join) =>
      join
        .onRef('sources.environment', '=', 'events.environment')
        .onRef('sources.kind', '=', 'events.source_kind')
        .onRef('sources.source_id', '=', 'events.source_id'),
    )
    .select([
      'events.seq',
      'events.environment',
      'events.event_id',
      'events.headers',
      'events.body',
      'events.body_sha256',
      'events.body_removed',
      'events.normalized',
      'events.customer_id',
      'sources.customer_id as source_customer_id',
    ])
    .where('events.seq', 'in', seqs)
    .orderBy('events.seq')
    .execute()
  return rows.map((row) => ({
    seq: row.seq,
    environment: row.environment,
    eventId: row.event_id,
    isByHand: row.headers === 'null',
    body: row.body,
    isAltered: isAltered(row),
    event: row.normalized === null ? null : eventInForm(row.normalized, row.event_id),
    customerId: row.customer_id ?? row.source_customer_id,
  }))
}

/** How long the body was is kept, from the first time that it is rewritten. */
const bytesBefore = sql<number>`coalesce(body_bytes, length(body))`

export async function rewriteBody(
  trx: Transaction<Database>,
  seq: number,
  { body, why, event }: RewrittenBody,
  now: number,
): Promise<void> {
  await trx
    .updateTable('events')
    .set({
      normalized: event && formOf(event),
      ...(why && { body, body_removed: why, body_removed_at: now, body_bytes: bytesBefore }),
    })
    .where('seq', '=', seq)
    .execute()
}

type ConflictKey = Pick<Selectable<EventConflictsTable>, 'environment' | 'event_id' | 'body_sha256'>

/** Another body that came under the id of a stored event. */
export interface StoredConflict extends ConflictKey {
  readonly body: Buffer
  /** Whether it is not the one that came, though nobody has rewritten it. */
  readonly isAltered: boolean
}

/** Those under any of these ids that are still there. */
export async function loadConflictBodies(
  db: Kysely<Database>,
  environment: Environment,
  eventIds: readonly string[],
): Promise<readonly StoredConflict[]> {
  const rows = await db
    .selectFrom('event_conflicts')
    .select(['environment', 'event_id', 'body_sha256', 'body', 'body_removed'])
    .where('environment', '=', environment)
    .where('event_id', 'in', eventIds)
    .execute()
  return rows.flatMap(({ body, body_removed, ...key }) =>
    body === null ? [] : [{ ...key, body, isAltered: isAltered({ ...key, body, body_removed }) }],
  )
}

export async function rewriteConflict(
  trx: Transaction<Database>,
  key: ConflictKey,
  { body, why }: Pick<RewrittenBody, 'body' | 'why'>,
  now: number,
): Promise<void> {
  await trx
    .updateTable('event_conflicts')
    .set({ body, body_removed: why, body_removed_at: now, body_bytes: bytesBefore })
    .where('environment', '=', key.environment)
    .where('event_id', '=', key.event_id)
    .where('body_sha256', '=', key.body_sha256)
    .execute()
}

/** The events of a customer that an index leads to: of their sources, and by hand; at most so many of each. */
export async function loadSeqsOfCustomer(
  db: Kysely<Database>,
  environment: Environment,
  customerId: string,
  limit: number,
): Promise<readonly number[]> {
  const sources = await db
    .selectFrom('sources')
    .select('history')
    .where('environment', '=', environment)
    .where('customer_id', '=', customerId)
    .execute()
  const ofSources = sources.flatMap(({ history }) => unpackHistory(history) ?? []).slice(0, limit)
  const byHand = await db
    .selectFrom('events')
    .select('seq')
    .where('environment', '=', environment)
    .where('customer_id', '=', customerId)
    .where(sql<boolean>`type like 'manual.%'`)
    .limit(limit)
    .execute()
  return [...new Set([...ofSources, ...byHand].map(({ seq }) => seq))]
}

/** The events of some sources that name no customer themselves. */
export async function loadNamelessSeqs(
  db: Kysely<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<readonly number[]> {
  const sources = await loadSources(db, environment, keys)
  return [...sources.values()].flatMap((source) =>
    readHistory(source).flatMap(({ seq, customerId }) => (customerId === null ? [seq] : [])),
  )
}

/** The next events beyond a `seq`, up to another, by environment. */
export async function loadSeqsBeyond(
  db: Kysely<Database>,
  beyond: number,
  end: number,
  limit: number,
): Promise<readonly { readonly seq: number; readonly environment: Environment }[]> {
  return db
    .selectFrom('events')
    .select(['seq', 'environment'])
    .where('seq', '>', beyond)
    .where('seq', '<=', end)
    .orderBy('seq')
    .limit(limit)
    .execute()
}
