import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import { foldBlocks, foldErasures } from '../entitlements/by-hand.js'
import type { Block, Erasure, HoldReason, SourceKey } from '../entitlements/model.js'
import {
  type Environment,
  type ManualEvent,
  NORMALIZER_VERSION,
  type NormalizedEvent,
  type QuarantineReason,
} from '../provider/event.js'
import { bulkInsert, bulkUpdate, lookupIn } from './bulk.js'
import { newestSeq } from './event-walk.js'
import type { BodyRemovalReason, Database, EventsTable, StoredDisposition } from './schema.js'
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
  /** As received, so that the signature can be checked again; null: changed by hand, and unsigned. */
  readonly headers: SignedHeaders | null
  /** The exact signed bytes, or what `removed` says is stored instead; null: nothing. */
  readonly body: Buffer | null
  /** Of these exact bytes, in lower-case hex. */
  readonly bodySha256: string
  readonly removed?: RemovedBody
}

/** Why the original bytes are not stored, since when (epoch milliseconds), and their original length. */
export interface RemovedBody {
  readonly why: BodyRemovalReason
  readonly at: number
  readonly bytes: number
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

/** The columns that follow from the body; the others say how and when it came. */
export const READ_COLUMNS = [
  'event_id',
  'disposition',
  'reason',
  'generation',
  'type',
  'created_at',
  'normalizer_version',
  'normalized',
  'customer_id',
  'payment_id',
  'source_kind',
  'source_id',
] as const

export type ReadColumns = Pick<Selectable<EventsTable>, (typeof READ_COLUMNS)[number]>

/** By the current program. */
export function columnsOf({ eventId, disposition, reason, event, source }: EventReading): ReadColumns {
  return {
    event_id: eventId,
    disposition,
    reason,
    generation: event?.generation ?? null,
    type: event?.type ?? null,
    created_at: event?.createdAt ?? null,
    normalizer_version: NORMALIZER_VERSION,
    normalized: event === null ? null : formOf(event),
    customer_id: event?.customerId ?? null,
    payment_id: event?.subject === 'payment' ? event.paymentId : null,
    source_kind: source?.kind ?? null,
    source_id: source?.id ?? null,
  }
}

export interface NewEvent extends DeliveredEvent, EventReading {}

/** The columns about a body that is not the original. */
const REMOVAL_COLUMNS = ['body_removed', 'body_removed_at', 'body_bytes'] as const

function removalColumns(removed: RemovedBody | undefined) {
  return {
    body_removed: removed?.why ?? null,
    body_removed_at: removed?.at ?? null,
    body_bytes: removed?.bytes ?? null,
  }
}

/** The new disposition of a stored event after it is folded with others. */
export interface EventOutcome {
  readonly eventId: string
  readonly disposition: StoredDisposition
  readonly reason: HoldReason | null
}

const COLUMNS = [
  'seq',
  'environment',
  'endpoint',
  'received_at',
  'headers',
  'body',
  'body_sha256',
  'last_received_at',
  ...READ_COLUMNS,
] as const
const insert = bulkInsert('events', COLUMNS)
const insertSomeRemoved = bulkInsert('events', [...COLUMNS, ...REMOVAL_COLUMNS])

/** The number of the next stored event: a source's history contains it before the event is stored. */
export async function nextSeq(trx: Transaction<Database>): Promise<number> {
  return (await newestSeq(trx)) + 1
}

/**
 * Stores new events, numbered in order: none may be stored already, or come twice.
 * @param first from `nextSeq`, in the same transaction
 */
export async function insertEvents(
  trx: Transaction<Database>,
  events: readonly NewEvent[],
  first?: number,
): Promise<void> {
  const from = first ?? (await nextSeq(trx))
  // Most batches hold no such event, and then every value less to bind counts.
  const isAnyRemoved = events.some(({ removed }) => removed !== undefined)
  const rows = events.map((event, i) => toRow(event, from + i))
  await (isAnyRemoved ? insertSomeRemoved : insert)(trx, rows)
}

const selectIds = lookupIn(
  'event_id',
  (matches) => sql<{ event_id: string }>`select event_id from events where ${matches}`,
)

/** Which of these ids are stored already. */
export async function loadStoredIds(
  db: Kysely<Database>,
  environment: Environment,
  eventIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await selectIds(db, environment, [...new Set(eventIds)])
  return new Set(rows.map((row) => row.event_id))
}

const updatePlaces = bulkUpdate(
  ([kind, id, seq], from) =>
    sql`update events set source_kind = ${kind}, source_id = ${id} ${from} where seq = ${seq}`,
)

/** Moves events to other sources. */
export async function placeEvents(
  trx: Transaction<Database>,
  moved: readonly { readonly seq: number; readonly source: SourceKey }[],
): Promise<void> {
  await updatePlaces(
    trx,
    moved.map(({ seq, source }) => [source.kind, source.id, seq]),
  )
}

const updateDispositions = bulkUpdate(
  ([disposition, reason, environment, id], from) => sql`
    update events set disposition = ${disposition}, reason = ${reason} ${from}
    where environment = ${environment} and event_id = ${id}`,
)

/** Each event at most once. */
export async function setDispositions(
  trx: Transaction<Database>,
  environment: Environment,
  outcomes: readonly EventOutcome[],
): Promise<void> {
  await updateDispositions(
    trx,
    outcomes.map(({ eventId, disposition, reason }) => [disposition, reason, environment, eventId]),
  )
}

function toRow(event: NewEvent, seq: number) {
  return {
    seq,
    environment: event.environment,
    endpoint: event.endpoint,
    received_at: event.receivedAt,
    headers: JSON.stringify(event.headers),
    body: event.body,
    body_sha256: event.bodySha256,
    last_received_at: event.receivedAt,
    ...columnsOf(event),
    ...removalColumns(event.removed),
  }
}

const countDeliveries = bulkUpdate(
  ([count, newest, last, environment, id], from) => sql<{
    environment: string
    event_id: string
    body_sha256: string
  }>`
    update events set deliveries = deliveries + ${count},
      last_received_at = case when last_received_at < ${newest} then ${last} else last_received_at end ${from}
    where environment = ${environment} and event_id = ${id}
    returning environment, event_id, body_sha256`,
)

const upsertConflicts = bulkInsert(
  'event_conflicts',
  [
    'environment',
    'event_id',
    'body_sha256',
    'body',
    'endpoint',
    'headers',
    'received_at',
    'deliveries',
    ...REMOVAL_COLUMNS,
  ],
  sql`on conflict (environment, event_id, body_sha256)
    do update set deliveries = event_conflicts.deliveries + excluded.deliveries`,
)

/**
 * Counts each delivery on the stored event with its id, and returns those with another body. Such a body is stored
 * once, however often it comes; it never changes the stored event.
 */
export async function recordDuplicates<Delivered extends DeliveredEvent>(
  trx: Transaction<Database>,
  deliveries: readonly Delivered[],
): Promise<readonly Delivered[]> {
  const keyOf = ({ environment, eventId }: DeliveredEvent) => `${environment} ${eventId}`
  const stored = await countDeliveries(
    trx,
    tally(deliveries, keyOf).map(({ first, count, lastReceivedAt }) => [
      count,
      lastReceivedAt,
      lastReceivedAt,
      first.environment,
      first.eventId,
    ]),
  )
  const storedBodies = new Map(stored.map((row) => [`${row.environment} ${row.event_id}`, row.body_sha256]))
  const conflicts = deliveries.filter((one) => storedBodies.get(keyOf(one)) !== one.bodySha256)
  await upsertConflicts(
    trx,
    tally(conflicts, (other) => `${keyOf(other)} ${other.bodySha256}`).map(({ first, count }) => ({
      environment: first.environment,
      event_id: first.eventId,
      body_sha256: first.bodySha256,
      body: first.body,
      endpoint: first.endpoint,
      headers: JSON.stringify(first.headers),
      received_at: first.receivedAt,
      deliveries: count,
      ...removalColumns(first.removed),
    })),
  )
  return conflicts
}

/** Combines deliveries with the same key, since a statement may change each row only once. */
function tally(deliveries: readonly DeliveredEvent[], keyOf: (delivery: DeliveredEvent) => string) {
  return [...Map.groupBy(deliveries, keyOf).values()].flatMap((group) => {
    const [first] = group
    const lastReceivedAt = Math.max(...group.map(({ receivedAt }) => receivedAt))
    return first === undefined ? [] : { first, count: group.length, lastReceivedAt }
  })
}

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
