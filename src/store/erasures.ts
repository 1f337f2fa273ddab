import { setImmediate as turn } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import { unpackHistory } from '../entitlements/history.js'
import type { Environment, ManualEvent } from '../provider/event.js'
import type { Redactable, Redacted } from '../provider/redact.js'
import { forgetKeptOf } from './backfill.js'
import { bulkInsert, lookupIn } from './bulk.js'
import { deleteReferences, loadCustomers, loadHistoriesOf, saveCustomers } from './customers.js'
import { ask, engineOf, fixedQuery } from './engine.js'
import { manualEventIn, setBody } from './events.js'
import { forgetJoinLinks } from './join-links.js'
import { forgetJobRecords } from './recompute.js'
import type { Db, ErasuresTable, EventsTable, PersonKey, SourcesTable, Tx } from './schema.js'
import { eventInForm, formOf } from './stored-form.js'

/** The change by hand that erases somebody. */
export interface ErasureAct extends ManualEvent {
  readonly environment: Environment
}

/** An erased customer. Instants are epoch milliseconds. */
export interface ErasureRecord extends PersonKey {
  /** The event of the erasure. */
  readonly eventId: string
  readonly erasedAt: number
  /** Whether any of their purchases, changes or details was stored: if not, the id may be wrong. */
  readonly wasKnown: boolean
  /** When all their data was removed; null: the next start or minute continues. */
  readonly finishedAt: number | null
}

const SELECT_ERASED = fixedQuery('erased', 'select environment, customer_id from erasures')

/** The ids of all erased customers, by environment. */
export type ErasedIds = ReadonlyMap<Environment, ReadonlySet<string>>

export async function loadErasedIds(db: Db): Promise<ErasedIds> {
  const rows = await ask<Pick<ErasuresTable, 'environment' | 'customer_id'>>(db, SELECT_ERASED)
  const byEnvironment = Map.groupBy(rows, ({ environment }) => environment)
  return new Map([...byEnvironment].map(([key, own]) => [key, new Set(own.map((row) => row.customer_id))]))
}

const COUNT_ERASED = fixedQuery('erased_count', 'select count(*) as count from erasures')

export async function countErased(db: Db): Promise<number> {
  const [counted] = await ask<{ count: number }>(db, COUNT_ERASED)
  return counted?.count ?? 0
}

async function erasuresWhere(db: Db, which: RawBuilder<unknown>): Promise<readonly ErasureRecord[]> {
  const { rows } = await sql<Omit<ErasureRecord, 'wasKnown'> & { readonly was_known: number }>`
    select environment, customer_id as "customerId", event_id as "eventId", erased_at as "erasedAt", was_known,
      finished_at as "finishedAt" from erasures where ${which}`.execute(db)
  return rows.map(({ was_known: known, ...row }) => ({ ...row, wasKnown: known === 1 }))
}

/**
 * Whether the event of an erasure is that erasure. In stores of version 1.0.0 it may be another change by hand: then
 * the person's access never ended, and a further erasure does it.
 */
const HAS_ITS_EVENT = sql`exists (${itsEvent(sql`1`)})`

/** A query inside one of `erasures`. (As a join, it would look into `events` even where nobody was erased.) */
function itsEvent(column: RawBuilder<unknown>) {
  return sql`select ${column} from events
    where events.environment = erasures.environment and events.event_id = erasures.event_id
      and events.customer_id = erasures.customer_id and events.type = 'manual.erased'`
}

/** Null if the customer is not erased. */
export async function loadErasure(db: Db, environment: Environment, customerId: string) {
  const isTheirs = sql`environment = ${environment} and customer_id = ${customerId}`
  const [found] = await erasuresWhere(db, sql`${isTheirs} and ${HAS_ITS_EVENT}`)
  return found ?? null
}

export function loadUnfinishedErasures(db: Db): Promise<readonly ErasureRecord[]> {
  return erasuresWhere(db, sql`finished_at is null`)
}

/**
 * Runs in the transaction that stores the event: from then on, deliveries that name them are redacted. Once per person.
 */
export async function saveErasures(trx: Tx, acts: readonly ErasureAct[]): Promise<void> {
  const rows = acts.map(({ environment, id, customerId, createdAt }) => {
    return { environment, customer_id: customerId, event_id: id, erased_at: createdAt, was_known: 0 } as const
  })
  await insert(trx, rows)
}

const insert = bulkInsert(
  'erasures',
  () => sql`on conflict (environment, customer_id) do update
    set event_id = excluded.event_id, erased_at = excluded.erased_at, finished_at = null where not ${HAS_ITS_EVENT}`,
)

/**
 * Removes everything about a customer except the id, and the provider's deletion if there was one. The data of their
 * events is gone by then.
 */
export async function finishErasure(
  trx: Tx,
  { environment, customerId }: PersonKey,
  hadEvents: boolean,
  now: number,
): Promise<void> {
  const known = (await loadCustomers(trx, environment, [customerId])).get(customerId)
  const wasKnown = hadEvents || Object.keys(known?.facts ?? {}).length > 0
  await forgetPerson(trx, environment, customerId)
  await forgetJobRecords(trx)
  await forgetKeptOf(trx, environment, customerId)
  await sql`update erasures set finished_at = ${now}, was_known = ${wasKnown ? 1 : sql.ref('was_known')}
    where environment = ${environment} and customer_id = ${customerId}`.execute(trx)
}

/** Has the next `finishErasures` remove what is stored of these people once more. */
export const reopenErasures = lookupIn('customer_id', sql`update erasures set finished_at = null where`)

export async function forgetPerson(trx: Tx, environment: Environment, customerId: string): Promise<void> {
  const stored = await loadCustomers(trx, environment, [customerId])
  const forgotten = [...stored.values()].map((known) => ({ ...known, facts: {} }))
  await saveCustomers(trx, environment, stored, forgotten)
  await deleteReferences(trx, environment, [customerId])
  await forgetJoinLinks(trx, environment, customerId)
}

export async function hasErasedSince(db: Db, at: number): Promise<boolean> {
  const { rows } = await sql`select 1 from erasures where erased_at >= ${at} limit 1`.execute(db)
  return rows.length > 0
}

/** Customers whom the provider reported as deleted, and who are not erased. */
export async function loadDeletedUnerased(db: Db, limit: number): Promise<readonly PersonKey[]> {
  const { rows } = await sql<PersonKey>`
    select environment, customer_id as "customerId" from customers
    where deleted_at is not null and not exists (
      select 1 from erasures
      where erasures.environment = customers.environment and erasures.customer_id = customers.customer_id)
    limit ${limit}`.execute(db)
  return rows
}

/** Every event that erased somebody, oldest first. */
export async function loadErasureActs(db: Db): Promise<readonly ErasureAct[]> {
  const { rows } = await sql<Pick<EventsTable, 'environment' | 'event_id' | 'normalized'>>`
    select environment, event_id, (${itsEvent(sql`normalized`)}) as normalized from erasures order by erased_at`.execute(
    db,
  )
  return rows.flatMap(({ environment, event_id, normalized }) => {
    const event = normalized === null ? null : manualEventIn(normalized, event_id)
    return event === null ? [] : [{ ...event, environment }]
  })
}

/** Takes some 20 ms, after which other work has its turn. */
const SOURCES_PER_STEP = 10_000

/**
 * The numbers of all events that may be about a customer: events that name them, events without a customer in one of
 * their sources, and events without customer or source that contain the id.
 */
export async function loadSeqsOfPerson(db: Db, { environment, customerId }: PersonKey) {
  const engine = engineOf(db)
  const withoutSource = await sql<{ seq: number }>`
    select seq from events where source_kind is null and environment = ${environment}
      and customer_id = ${customerId}
    union all
    select seq from events where source_kind is null and environment = ${environment}
      and customer_id is null and ${engine.contains('body', Buffer.from(customerId))}`.execute(db)
  const found = [...withoutSource.rows]
  const newest = await sql<{ seq: number | null }>`select max(seq) as seq from sources`.execute(db)
  for (let from = 0; from < (newest.rows[0]?.seq ?? 0); from += SOURCES_PER_STEP) {
    // A history is JSON: another customer's source may contain events that name this one.
    const names = engine.contains('history', JSON.stringify(customerId))
    const { rows } = await sql<Pick<SourcesTable, 'environment' | 'customer_id' | 'history'>>`
      select environment, customer_id, history from sources
      where seq > ${from} and seq <= ${from + SOURCES_PER_STEP} and (customer_id = ${customerId} or ${names})`.execute(
      db,
    )
    for (const source of rows.filter((row) => row.environment === environment)) {
      const events = unpackHistory(source.history) ?? []
      found.push(...events.filter((event) => (event.customerId ?? source.customer_id) === customerId))
    }
    await turn()
  }
  return found.map(({ seq }) => seq).sort((a, b) => a - b)
}

/** The numbers of the events in a customer's sources that name them, or nobody. */
export async function loadSeqsOfOwnSources(db: Db, { environment, customerId }: PersonKey) {
  const sources = await loadHistoriesOf(db, environment, [customerId])
  return sources
    .flatMap(({ history }) => unpackHistory(history) ?? [])
    .filter((event) => (event.customerId ?? customerId) === customerId)
    .map(({ seq }) => seq)
}

export interface StoredBody extends Redactable {
  readonly seq: number
  readonly eventId: string
}

/** Numbers of events in one environment, in the order of arrival. */
export async function loadStoredBodies(db: Db, seqs: readonly number[]): Promise<readonly StoredBody[]> {
  const { rows } = await sql<Omit<StoredBody, 'event'> & { normalized: string | null }>`
    select events.seq, event_id as "eventId", body, normalized, sources.customer_id as owner
    from events left join sources on sources.environment = events.environment
      and sources.kind = events.source_kind and sources.source_id = events.source_id
    where events.seq in (${sql.join(seqs)}) order by events.seq`.execute(db)
  return rows.map(({ normalized, ...row }) => ({
    ...row,
    event: normalized === null ? null : eventInForm(normalized, row.eventId),
  }))
}

export async function saveRedacted(trx: Tx, seq: number, { body, removed, event }: Redacted, now: number) {
  const withBody = removed === null ? sql`` : sql`, ${setBody(body, removed, now)}`
  const form = event && formOf(event)
  await sql`update events set normalized = ${form} ${withBody} where seq = ${seq}`.execute(trx)
}

/** Another body that came under the id of an event. */
interface StoredConflict {
  readonly eventId: string
  readonly bodySha256: string
  readonly body: Buffer
}

/** Bodies under any of these ids, and bodies that contain the customer's id. */
export async function loadConflictsOfPerson(
  db: Db,
  { environment, customerId }: PersonKey,
  eventIds: readonly string[],
): Promise<readonly StoredConflict[]> {
  const { rows } = await sql<StoredConflict>`
    select event_id as "eventId", body_sha256 as "bodySha256", body from event_conflicts
    where environment = ${environment} and body is not null
      and (event_id in (${sql.join(eventIds)})
        or ${engineOf(db).contains('body', Buffer.from(customerId))})`.execute(db)
  return rows
}

/** @param left the rest of the body; null: nothing */
export async function saveRedactedConflict(
  trx: Tx,
  { environment }: PersonKey,
  { eventId, bodySha256 }: StoredConflict,
  left: Buffer | null,
  now: number,
): Promise<void> {
  await sql`update event_conflicts set ${setBody(left, left === null ? 'erased' : 'redacted', now)}
    where environment = ${environment} and event_id = ${eventId} and body_sha256 = ${bodySha256}`.execute(trx)
}
