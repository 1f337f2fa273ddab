import { type Kysely, sql, type Transaction } from 'kysely'
import type { HoldReason, SourceKey } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkLookup, bulkStatement, rowStatement } from './bulk.js'
import { columnsOf, type EventReading, READ_COLUMNS } from './event-reading.js'
import { newestSeq } from './event-walk.js'
import type { Database, StoredDisposition } from './schema.js'
import type { BodyRemoval } from './stored-event.js'

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
  /** The exact bytes that were signed, unless `removed` says what is stored in their place; null: nothing. */
  readonly body: Buffer | null
  /** Of these exact bytes, in lower-case hex. */
  readonly bodySha256: string
  readonly removed?: RemovedBody
}

/** Why bytes are not stored as they came, and how many there were. */
export interface RemovedBody extends BodyRemoval {
  readonly bytes: number
}

export interface NewEvent extends DeliveredEvent, EventReading {}

/** What tells of a body that is not stored as it came. */
export const REMOVAL_COLUMNS = ['body_removed', 'body_removed_at', 'body_bytes'] as const

export function removalColumns(removed: RemovedBody | undefined) {
  return {
    body_removed: removed?.why ?? null,
    body_removed_at: removed?.at ?? null,
    body_bytes: removed?.bytes ?? null,
  }
}

/** What became of a stored event, told anew once it is folded with others. */
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

/** The number that the next event is stored under: a source's history names it before the event is there. */
export async function nextSeq(trx: Transaction<Database>): Promise<number> {
  return (await newestSeq(trx)) + 1
}

/**
 * Stores what is new, numbered as they come: no event that is stored already, and none twice.
 * @param first as `nextSeq` tells, in the same transaction
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

const selectIds = bulkLookup(
  ['environment', 'event_id'],
  (isTold) => sql<{ event_id: string }>`
    select event_id from events where ${isTold}`,
)

/** Which of these ids are stored already. */
export async function loadStoredIds(
  db: Kysely<Database>,
  environment: Environment,
  eventIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await selectIds(
    db,
    [...new Set(eventIds)].map((id) => [environment, id]),
  )
  return new Set(rows.map((row) => row.event_id))
}

const updatePlaces = rowStatement(
  ([kind, id, seq]) => sql`update events set source_kind = ${kind}, source_id = ${id} where seq = ${seq}`,
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

const updateDispositions = bulkStatement(
  (outcomes) => sql`
    with told (environment, event_id, disposition, reason) as (${outcomes})
    update events set disposition = told.disposition, reason = told.reason from told
    where events.environment = told.environment and events.event_id = told.event_id`,
)

/** Each event at most once. */
export async function setDispositions(
  trx: Transaction<Database>,
  environment: Environment,
  outcomes: readonly EventOutcome[],
): Promise<void> {
  await updateDispositions(
    trx,
    outcomes.map(({ eventId, disposition, reason }) => [environment, eventId, disposition, reason]),
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
