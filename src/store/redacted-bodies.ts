import { setImmediate as turn } from 'node:timers/promises'
import { type Kysely, sql, type Transaction } from 'kysely'
import { unpackHistory } from '../entitlements/history.js'
import type { Redactable, Redacted } from '../provider/redact.js'
import type { PersonKey } from './erasures.js'
import type { Database, SourcesTable } from './schema.js'
import { eventInForm, formOf } from './stored-form.js'

/** Some 20 ms, after which others have their turn. */
const SOURCES_PER_STEP = 10_000

/**
 * The numbers of all events that may be about a customer: those that name them, those of nobody in a source of theirs,
 * and those of nobody in no source that hold the id somewhere.
 */
export async function loadSeqsOfPerson(
  db: Kysely<Database>,
  { environment, customerId }: PersonKey,
): Promise<readonly number[]> {
  const withoutSource = await sql<{ seq: number }>`
    select seq from events where source_kind is null and environment = ${environment}
      and customer_id = ${customerId}
    union all
    select seq from events where source_kind is null and environment = ${environment}
      and customer_id is null and instr(body, cast(${customerId} as blob)) > 0`.execute(db)
  const found = [...withoutSource.rows]
  const newest = await sql<{ seq: number | null }>`select max(seq) as seq from sources`.execute(db)
  for (let from = 0; from < (newest.rows[0]?.seq ?? 0); from += SOURCES_PER_STEP) {
    // A history has the ids of its events between tabs: a source of somebody else may have events of theirs.
    const { rows } = await sql<Pick<SourcesTable, 'environment' | 'customer_id' | 'history'>>`
      select environment, customer_id, history from sources
      where seq > ${from} and seq <= ${from + SOURCES_PER_STEP} and (customer_id = ${customerId}
        or instr(history, char(9) || ${customerId} || char(9)) > 0)`.execute(db)
    for (const source of rows.filter((row) => row.environment === environment)) {
      const events = unpackHistory(source.history) ?? []
      found.push(...events.filter((event) => (event.customerId ?? source.customer_id) === customerId))
    }
    await turn()
  }
  return found.map(({ seq }) => seq).sort((a, b) => a - b)
}

export interface StoredBody extends Redactable {
  readonly seq: number
  readonly eventId: string
}

/** Those of one environment, in the order of arrival. */
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
    .select(['events.seq', 'events.event_id', 'events.body', 'events.normalized'])
    .select('sources.customer_id as owner')
    .where('events.seq', 'in', seqs)
    .orderBy('events.seq')
    .execute()
  return rows.map(({ seq, event_id: eventId, body, normalized, owner }) => ({
    seq,
    eventId,
    body,
    event: normalized === null ? null : eventInForm(normalized, eventId),
    owner,
  }))
}

/** How long the body was is kept, from the first time that it is rewritten. */
const bytesBefore = sql<number>`coalesce(body_bytes, length(body))`

export async function saveRedacted(
  trx: Transaction<Database>,
  seq: number,
  { body, removed, event }: Redacted,
  now: number,
): Promise<void> {
  await trx
    .updateTable('events')
    .set({
      normalized: event && formOf(event),
      ...(removed && { body, body_removed: removed, body_removed_at: now, body_bytes: bytesBefore }),
    })
    .where('seq', '=', seq)
    .execute()
}

/** Another body that came under the id of an event. */
export interface StoredConflict {
  readonly eventId: string
  readonly bodySha256: string
  readonly body: Buffer
}

/** Those under any of these ids, and those that hold the customer's id. */
export async function loadConflictsOfPerson(
  db: Kysely<Database>,
  { environment, customerId }: PersonKey,
  eventIds: readonly string[],
): Promise<readonly StoredConflict[]> {
  const rows = await db
    .selectFrom('event_conflicts')
    .select(['event_id', 'body_sha256', 'body'])
    .where('environment', '=', environment)
    .where((is) =>
      is.or([is('event_id', 'in', eventIds), sql<boolean>`instr(body, cast(${customerId} as blob)) > 0`]),
    )
    .execute()
  return rows.flatMap(({ event_id: eventId, body_sha256: bodySha256, body }) =>
    body === null ? [] : [{ eventId, bodySha256, body }],
  )
}

export async function saveRedactedConflict(
  trx: Transaction<Database>,
  { environment }: PersonKey,
  { eventId, bodySha256 }: StoredConflict,
  { body, removed }: Pick<Redacted, 'body' | 'removed'>,
  now: number,
): Promise<void> {
  await trx
    .updateTable('event_conflicts')
    .set({ body, body_removed: removed, body_removed_at: now, body_bytes: bytesBefore })
    .where('environment', '=', environment)
    .where('event_id', '=', eventId)
    .where('body_sha256', '=', bodySha256)
    .execute()
}
