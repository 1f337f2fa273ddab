import { type Insertable, type Kysely, sql, type Transaction } from 'kysely'
import type { HoldReason, SourceKey } from '../entitlements/model.js'
import {
  type Environment,
  NORMALIZER_VERSION,
  type NormalizedEvent,
  type QuarantineReason,
} from '../provider/event.js'
import { chunkRows, valuesOf } from './chunk.js'
import { eventKey, sourceKey } from './keys.js'
import type { Database, EventsTable, StoredDisposition } from './schema.js'

/** The headers that a signature is checked by, and the one that names a type. */
export interface SignedHeaders {
  readonly event: string | null
  readonly timestamp: string
  readonly signature: string
}

/** One delivery as it came, under the id that makes it one event. */
export interface DeliveredEvent {
  readonly environment: Environment
  /** The `evt_` id, or `sha256:<hex>` of the body where it has no usable id. */
  readonly eventId: string
  readonly endpoint: string
  /** Epoch milliseconds. */
  readonly receivedAt: number
  /** As received, so that the signature can be checked again; null: done by hand, and signed by nobody. */
  readonly headers: SignedHeaders | null
  /** The exact bytes that were signed. */
  readonly body: Buffer
  /** Lower-case hex. */
  readonly bodySha256: string
}

export interface NewEvent extends DeliveredEvent {
  readonly disposition: StoredDisposition
  /** Why it is held or quarantined; null otherwise. */
  readonly reason: QuarantineReason | HoldReason | null
  /** Null exactly where quarantined. */
  readonly event: NormalizedEvent | null
  /** The source that it belongs to, if it is known. */
  readonly source: SourceKey | null
}

/** What became of a stored event, told anew once it is folded with others. */
export interface EventOutcome {
  readonly eventId: string
  readonly disposition: StoredDisposition
  readonly reason: HoldReason | null
}

const VALUES_PER_ROW = 19

/**
 * Stores what is new, and answers the keys (`eventKey`) of what it stored. What is stored already, or comes
 * twice among `events`, stays as it first was: the rest are duplicates.
 */
export async function insertEvents(
  trx: Transaction<Database>,
  events: readonly NewEvent[],
): Promise<ReadonlySet<string>> {
  const inserted = new Set<string>()
  for (const chunk of chunkRows(events, VALUES_PER_ROW)) {
    const rows = await trx
      .insertInto('events')
      .values(chunk.map(toRow))
      .onConflict((conflict) => conflict.columns(['environment', 'event_id']).doNothing())
      .returning(['environment', 'event_id'])
      .execute()
    for (const row of rows) inserted.add(eventKey(row.environment, row.event_id))
  }
  return inserted
}

/** Which of these ids are stored already. */
export async function loadStoredIds(
  db: Kysely<Database>,
  environment: Environment,
  eventIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const stored = new Set<string>()
  for (const chunk of chunkRows([...new Set(eventIds)], 1)) {
    const rows = await db
      .selectFrom('events')
      .select('event_id')
      .where('environment', '=', environment)
      .where('event_id', 'in', chunk)
      .execute()
    for (const row of rows) stored.add(row.event_id)
  }
  return stored
}

/** Which of these payments have payment or checkout events stored. */
export async function loadKnownPayments(
  db: Kysely<Database>,
  environment: Environment,
  paymentIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const known = new Set<string>()
  for (const chunk of chunkRows(paymentIds, 1)) {
    const rows = await db
      .selectFrom('events')
      .select('payment_id')
      .distinct()
      .where('environment', '=', environment)
      .where('payment_id', 'in', chunk)
      .execute()
    for (const row of rows) if (row.payment_id !== null) known.add(row.payment_id)
  }
  return known
}

/** All stored events of each source, by `sourceKey`, in no order: folding sorts them. */
export async function loadSourceEvents(
  db: Kysely<Database>,
  environment: Environment,
  sources: readonly SourceKey[],
): Promise<ReadonlyMap<string, readonly NormalizedEvent[]>> {
  const found = new Map<string, NormalizedEvent[]>(sources.map((source) => [sourceKey(source), []]))
  for (const chunk of chunkRows(sources, 2)) {
    const keys = valuesOf(chunk.map(({ kind, id }) => [kind, id]))
    const rows = await db
      .selectFrom('events')
      .select(['source_kind', 'source_id', 'normalized'])
      .where('environment', '=', environment)
      .where(sql<boolean>`(source_kind, source_id) in (${keys})`)
      .execute()
    for (const { source_kind: kind, source_id: id, normalized } of rows) {
      if (kind === null || id === null || normalized === null) continue
      found.get(sourceKey({ kind, id }))?.push(JSON.parse(normalized) as NormalizedEvent)
    }
  }
  return found
}

/**
 * Moves payments' own events (payment and checkout) to another source. Subscription events stay with the
 * subscription they are about, whatever payment they name. Each payment at most once.
 */
export async function assignPaymentEvents(
  trx: Transaction<Database>,
  environment: Environment,
  assignments: readonly { readonly paymentId: string; readonly source: SourceKey }[],
): Promise<void> {
  for (const chunk of chunkRows(assignments, 3)) {
    const rows = valuesOf(chunk.map(({ paymentId, source }) => [paymentId, source.kind, source.id]))
    await sql`
      with moved (payment_id, kind, id) as (${rows})
      update events set source_kind = moved.kind, source_id = moved.id from moved
      where events.environment = ${environment} and events.payment_id = moved.payment_id
    `.execute(trx)
  }
}

/** Each event at most once. */
export async function setDispositions(
  trx: Transaction<Database>,
  environment: Environment,
  outcomes: readonly EventOutcome[],
): Promise<void> {
  for (const chunk of chunkRows(outcomes, 3)) {
    const rows = valuesOf(chunk.map(({ eventId, disposition, reason }) => [eventId, disposition, reason]))
    await sql`
      with told (event_id, disposition, reason) as (${rows})
      update events set disposition = told.disposition, reason = told.reason from told
      where events.environment = ${environment} and events.event_id = told.event_id
    `.execute(trx)
  }
}

function toRow({ event, source, ...delivered }: NewEvent): Insertable<EventsTable> {
  return {
    environment: delivered.environment,
    event_id: delivered.eventId,
    endpoint: delivered.endpoint,
    received_at: delivered.receivedAt,
    headers: JSON.stringify(delivered.headers),
    body: delivered.body,
    body_sha256: delivered.bodySha256,
    last_received_at: delivered.receivedAt,
    disposition: delivered.disposition,
    reason: delivered.reason,
    generation: event?.generation ?? null,
    type: event?.type ?? null,
    created_at: event?.createdAt ?? null,
    normalizer_version: NORMALIZER_VERSION,
    normalized: event === null ? null : JSON.stringify(event),
    customer_id: event?.customerId ?? null,
    payment_id: event?.subject === 'payment' ? event.paymentId : null,
    source_kind: source?.kind ?? null,
    source_id: source?.id ?? null,
  }
}
