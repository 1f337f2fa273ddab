import { sql } from 'kysely'
import type { Outcome } from '../entitlements/derive.js'
import type { HoldReason, SourceKey } from '../entitlements/model.js'
import {
  type Environment,
  type ManualEvent,
  NORMALIZER_VERSION,
  type NormalizedEvent,
  type QuarantineReason,
} from '../provider/event.js'
import { bulkInsert, lookupAs, pipelined, statementAbout } from './bulk.js'
import { engineOf } from './engine.js'
import { newestSeq } from './event-walk.js'
import {
  type BodyColumns,
  type BodyRemovalReason,
  type Db,
  eventKey,
  type StoredDisposition,
  type Tx,
} from './schema.js'
import { eventInForm, formOf } from './stored-form.js'

/** The headers needed to check a signature, and the one that names a type. */
export interface SignedHeaders {
  readonly event: string | null
  readonly timestamp: string
  readonly signature: string
}

/** An original delivery, under the id that makes it one event. */
export interface DeliveredEvent {
  readonly environment: Environment
  /** The `evt_` id, or `sha256:<hex>` of the body if it has no usable id. */
  readonly eventId: string
  readonly endpoint: string
  /** Epoch milliseconds. */
  readonly receivedAt: number
  /**
   * As received, so that the signature can be checked again. What Latchkey wrote has none: `reported` after a record of
   * the provider; null: changed by hand.
   */
  readonly headers: SignedHeaders | 'reported' | null
  /** The exact signed bytes, or what `removed` says is stored instead; null: nothing. */
  readonly body: Buffer | null
  /** Of these exact bytes, in lower-case hex. */
  readonly bodySha256: string
  readonly removed?: RemovedBody
}

/** Null: Latchkey wrote the event itself, or its headers were altered. */
export function signedHeaders(headers: DeliveredEvent['headers'] | undefined): SignedHeaders | null {
  return typeof headers === 'object' ? headers : null
}

/** Why the original bytes are not stored, since when (epoch milliseconds), and their original length. */
export interface RemovedBody {
  readonly why: BodyRemovalReason
  readonly at: number
  readonly bytes: number
}

/** One delivery or change by hand, with everything needed to store the same event elsewhere. */
export interface DeliveryInput
  extends Pick<DeliveredEvent, 'environment' | 'endpoint' | 'receivedAt' | 'headers'> {
  /** The exact bytes; with a `reading`, the rest of them, or empty. */
  readonly body: Buffer
  /** How far ahead of its receipt its endpoint lets it be dated; left out: a day. */
  readonly aheadAtMostMs?: number
  /** The normalised event, if its bytes were removed or rewritten. */
  readonly reading?: {
    readonly event: NormalizedEvent
    /** Of the original, in lower-case hex. */
    readonly bodySha256: string
    readonly removed: RemovedBody
  }
}

/** The normalised form of a body, and its disposition. */
export interface EventReading {
  /** The `evt_` id, or `sha256:<hex>` of the body if it has no usable id. */
  readonly eventId: string
  readonly disposition: StoredDisposition
  /** Why it is held or quarantined; null otherwise. */
  readonly reason: QuarantineReason | HoldReason | null
  /** Null exactly if quarantined. */
  readonly event: NormalizedEvent | null
  /** The source that it belongs to, if known. */
  readonly source: SourceKey | null
}

/** The columns that follow from the body alone, by the current program. */
export function formColumns({ eventId, event }: EventReading) {
  return {
    event_id: eventId,
    generation: event?.generation ?? null,
    type: event?.type ?? null,
    created_at: event?.createdAt ?? null,
    normalizer_version: NORMALIZER_VERSION,
    normalized: event === null ? null : formOf(event),
    customer_id: event?.customerId ?? null,
    payment_id: event?.subject === 'payment' ? event.paymentId : null,
  }
}

/** The columns that follow from the other events of its source, too. */
export function placeColumns({ disposition, reason, source }: EventReading) {
  return { disposition, reason, source_kind: source?.kind ?? null, source_id: source?.id ?? null }
}

export interface NewEvent extends DeliveredEvent, EventReading {}

/** Sets a stored body to what is left of it; null: nothing. Its original length is stored the first time. */
export const setBody = (left: Buffer | null, why: BodyRemovalReason, now: number) =>
  sql`body_bytes = coalesce(body_bytes, length(body)), body = ${left}, body_removed = ${why}, body_removed_at = ${now}`

const insert = bulkInsert('events')

/** Rising numbers for so many new events: a source's history contains them before the events are stored. */
export async function nextSeqs(trx: Tx, count: number): Promise<readonly number[]> {
  const [newest, drawn] = await pipelined([newestSeq(trx), engineOf(trx).drawSeqs(trx, count)])
  if (drawn === null) return Array.from({ length: count }, (_, i) => newest + 1 + i)
  // Version 1.0.0 numbers events itself, from the newest one on: those numbers are drawn, too, and left out.
  const [first = Number.POSITIVE_INFINITY, last = 0] = [drawn[0], drawn.at(-1)]
  if (first > newest) return drawn
  return (await engineOf(trx).drawSeqs(trx, Math.max(0, newest - last) + count))?.slice(-count) ?? []
}

/** Has the next number drawn be after all that are stored. */
export async function catchUpSeqs(trx: Tx): Promise<void> {
  if (!engineOf(trx).isRemote) return
  await sql`select setval('event_seqs', max(seq)) from events
    having max(seq) > coalesce(pg_sequence_last_value('event_seqs'), 0)`.execute(trx)
}

/**
 * Stores new events: none may be stored already, or come twice.
 * @param seqs their numbers, from `nextSeqs` in the same transaction
 */
export async function insertEvents(trx: Tx, events: readonly NewEvent[], seqs?: readonly number[]) {
  const numbers = seqs ?? (await nextSeqs(trx, events.length))
  const isAnyRemoved = events.some(({ removed }) => removed !== undefined)
  const rows = events.map((event, i) => ({
    seq: numbers[i] as number,
    ...deliveryColumns(event, isAnyRemoved),
    last_received_at: event.receivedAt,
    ...formColumns(event),
    ...placeColumns(event),
  }))
  await insert(trx, rows)
}

function deliveryColumns(delivered: DeliveredEvent, isAnyRemoved: boolean) {
  const columns = {
    environment: delivered.environment,
    event_id: delivered.eventId,
    endpoint: delivered.endpoint,
    received_at: delivered.receivedAt,
    headers: JSON.stringify(delivered.headers),
    body: delivered.body,
    body_sha256: delivered.bodySha256,
  }
  // Most batches hold no such body, and then every value less to bind counts.
  if (!isAnyRemoved) return columns
  const { why = null, at = null, bytes = null } = delivered.removed ?? {}
  return { ...columns, body_removed: why, body_removed_at: at, body_bytes: bytes }
}

/** The hashes of the bodies that are stored under these ids, by id. */
export const loadStoredHashes = lookupAs(
  'event_id',
  sql<Pick<BodyColumns, 'event_id' | 'body_sha256'>>`select event_id, body_sha256 from events where`,
  (rows): ReadonlyMap<string, string> => new Map(rows.map((row) => [row.event_id, row.body_sha256])),
)

/** Which of these ids are stored already. */
export async function loadStoredIds(
  db: Db,
  environment: Environment,
  eventIds: readonly string[],
): Promise<ReadonlySet<string>> {
  return new Set((await loadStoredHashes(db, environment, eventIds)).keys())
}

const updatePlaces = statementAbout(
  ({ values: [kind, id, seq], from }) =>
    sql`update events set source_kind = ${kind}, source_id = ${id} ${from} where seq = ${seq}`,
)

export async function placeEvents(
  trx: Tx,
  moved: readonly { readonly seq: number; readonly source: SourceKey }[],
): Promise<void> {
  const rows = moved.map(({ seq, source }) => [source.kind, source.id, seq])
  await updatePlaces(trx, rows)
}

const updateDispositions = statementAbout(
  ({ values: [disposition, reason, environment, id], from }) => sql`
    update events set disposition = ${disposition}, reason = ${reason} ${from}
    where environment = ${environment} and event_id = ${id}`,
)

/** Each event at most once. */
export async function setDispositions(
  trx: Tx,
  environment: Environment,
  outcomes: readonly (Outcome & { readonly eventId: string })[],
): Promise<void> {
  const rows = outcomes.map((one) => [one.disposition, one.reason, environment, one.eventId])
  await updateDispositions(trx, rows)
}

const countDeliveries = statementAbout(
  ({ values: [count, newest, last, environment, id], from }) => sql`
    update events set deliveries = deliveries + ${count},
      last_received_at = case when last_received_at < ${newest} then ${last} else last_received_at end ${from}
    where environment = ${environment} and event_id = ${id}`,
)

const upsertConflicts = bulkInsert(
  'event_conflicts',
  () => sql`on conflict (environment, event_id, body_sha256)
    do update set deliveries = event_conflicts.deliveries + excluded.deliveries`,
)

/**
 * Counts each delivery on the stored event with its id.
 * @param conflicts those among them with another body. It is stored once, however often it comes, and never changes the
 * stored event.
 */
export async function recordDuplicates(
  trx: Tx,
  deliveries: readonly DeliveredEvent[],
  conflicts: readonly DeliveredEvent[],
): Promise<void> {
  const keyOf = ({ environment, eventId }: DeliveredEvent) => eventKey(environment, eventId)
  const counted = tally(deliveries, keyOf).map(({ first, count, lastReceivedAt }) => {
    return [count, lastReceivedAt, lastReceivedAt, first.environment, first.eventId]
  })
  const others = tally(conflicts, (other) => `${keyOf(other)} ${other.bodySha256}`)
  const rows = others.map(({ first, count }) => ({ ...deliveryColumns(first, true), deliveries: count }))
  await pipelined([countDeliveries(trx, counted), upsertConflicts(trx, rows)])
}

/** Combines deliveries with the same key, since a statement may change each row only once. */
function tally(deliveries: readonly DeliveredEvent[], keyOf: (delivery: DeliveredEvent) => string) {
  return [...Map.groupBy(deliveries, keyOf).values()].flatMap((group) => {
    const [first] = group
    const lastReceivedAt = Math.max(...group.map(({ receivedAt }) => receivedAt))
    return first === undefined ? [] : { first, count: group.length, lastReceivedAt }
  })
}

/**
 * All changes by hand to these customers, by customer id, unordered. Few customers have any, and only a few events each:
 * they are folded for each question, so that no stored state can disagree with the events.
 */
export const loadManualEvents = lookupAs(
  'customer_id',
  // The condition on the type is exactly that of a partial index.
  sql<{ event_id: string; normalized: string }>`
    select event_id, normalized from events where type like 'manual.%' and`,
  (rows): ReadonlyMap<string, readonly ManualEvent[]> => {
    const events = rows.flatMap(({ event_id, normalized }) => manualEventIn(normalized, event_id) ?? [])
    return Map.groupBy(events, ({ customerId }) => customerId)
  },
)

/** A provider's event may have any type: changes by hand are recognised by their subject. */
export function manualEventIn(normalized: string, eventId: string): ManualEvent | null {
  const event = eventInForm(normalized, eventId)
  return event.subject === 'manual' ? event : null
}

/** One change by hand; null if no event with this id is stored. */
export async function loadManualEvent(db: Db, environment: Environment, eventId: string) {
  const { rows } = await sql<{ normalized: string | null }>`
    select normalized from events where environment = ${environment} and event_id = ${eventId}`.execute(db)
  const normalized = rows[0]?.normalized ?? null
  return normalized === null ? null : manualEventIn(normalized, eventId)
}
