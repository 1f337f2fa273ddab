import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { HoldReason, SourceKey } from '../entitlements/model.js'
import type { BodyRemoval } from '../entitlements/stored-event.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import type { BatchMemory } from './batch-memory.js'
import { bulkInsert, bulkLookup, bulkStatement } from './bulk.js'
import { columnsOf, type EventReading, READ_COLUMNS } from './event-reading.js'
import { paymentKey, sourceKey } from './keys.js'
import type { Database, EventsTable, StoredDisposition } from './schema.js'
import { eventInForm } from './stored-form.js'

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

/** Stores what is new: no event that is stored already, and none twice. */
export function insertEvents(trx: Transaction<Database>, events: readonly NewEvent[]): Promise<void> {
  // Most batches hold no such event, and then every value less to bind counts.
  const isAnyRemoved = events.some(({ removed }) => removed !== undefined)
  return (isAnyRemoved ? insertSomeRemoved : insert)(trx, events.map(toRow))
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

const selectKnownPayments = bulkStatement(
  (keys) => sql<{ payment_id: string }>`
    with asked (environment, payment_id) as (${keys})
    select payment_id from asked where exists (
      select 1 from events
      where environment = asked.environment and source_kind = 'payment' and source_id = asked.payment_id
        and payment_id = asked.payment_id
    ) or exists (
      select 1 from payment_links as link join events on events.environment = link.environment
        and events.source_kind = 'subscription' and events.source_id = link.subscription_id
        and events.payment_id = link.payment_id
      where link.environment = asked.environment and link.payment_id = asked.payment_id
    )`,
)

/** Which of these payments have payment or checkout events stored: with themselves, or where they are linked to. */
export async function loadKnownPayments(
  db: Kysely<Database>,
  environment: Environment,
  paymentIds: readonly string[],
  lately?: BatchMemory,
): Promise<ReadonlySet<string>> {
  const isKnown = (id: string): boolean => lately?.payments.get(paymentKey(environment, id)) ?? false
  const rows = await selectKnownPayments(
    db,
    paymentIds.filter((id) => !isKnown(id)).map((id) => [environment, id]),
  )
  return new Set([...paymentIds.filter(isKnown), ...rows.map((row) => row.payment_id)])
}

const selectSourceEvents = bulkLookup(
  ['environment', 'source_kind', 'source_id'],
  (isTold) => sql<Pick<Selectable<EventsTable>, 'source_kind' | 'source_id' | 'event_id' | 'normalized'>>`
    select source_kind, source_id, event_id, normalized from events
    where ${isTold}`,
)

/** All stored events of each source, by `sourceKey`, in no order: folding sorts them. */
export async function loadSourceEvents(
  db: Kysely<Database>,
  environment: Environment,
  sources: readonly SourceKey[],
): Promise<ReadonlyMap<string, readonly NormalizedEvent[]>> {
  const found = new Map<string, NormalizedEvent[]>(sources.map((source) => [sourceKey(source), []]))
  const rows = await selectSourceEvents(
    db,
    sources.map(({ kind, id }) => [environment, kind, id]),
  )
  for (const { source_kind: kind, source_id: id, event_id: eventId, normalized } of rows) {
    if (kind === null || id === null || normalized === null) continue
    found.get(sourceKey({ kind, id }))?.push(eventInForm(normalized, eventId))
  }
  return found
}

/** A payment whose events move from one source to another. */
export interface PaymentMove {
  readonly paymentId: string
  readonly from: SourceKey
  readonly to: SourceKey
}

const updateSources = bulkStatement(
  (moves) => sql`
    with moved (environment, payment_id, from_kind, from_id, to_kind, to_id) as (${moves})
    update events set source_kind = moved.to_kind, source_id = moved.to_id from moved
    where events.environment = moved.environment and events.source_kind = moved.from_kind
      and events.source_id = moved.from_id and events.payment_id = moved.payment_id`,
)

/**
 * Moves payments' own events (payment and checkout) to another source. Subscription events stay with the
 * subscription they are about, whatever payment they name. Each payment at most once.
 */
export async function movePaymentEvents(
  trx: Transaction<Database>,
  environment: Environment,
  moves: readonly PaymentMove[],
): Promise<void> {
  await updateSources(
    trx,
    moves.map(({ paymentId, from, to }) => [environment, paymentId, from.kind, from.id, to.kind, to.id]),
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

function toRow(event: NewEvent) {
  return {
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
