import { type ExpressionBuilder, type Kysely, type Selectable, sql } from 'kysely'
import type { BodyRemoval, RemovedOriginal, StoredEvent } from '../entitlements/stored-event.js'
import { sha256Of } from './body-as-it-came.js'
import type { Database, EventsTable } from './schema.js'

/** All that tells of an event, without its bytes: of these only the length is read. */
function summaryColumns({ selectFrom }: ExpressionBuilder<Database, 'events'>) {
  return [
    'events.seq',
    'events.environment',
    'events.event_id',
    'events.endpoint',
    'events.received_at',
    'events.body_sha256',
    'events.deliveries',
    'events.last_received_at',
    'events.disposition',
    'events.reason',
    'events.generation',
    'events.type',
    'events.created_at',
    'events.normalizer_version',
    'events.customer_id',
    'events.source_kind',
    'events.source_id',
    sql<number>`coalesce(events.body_bytes, length(events.body))`.as('body_bytes'),
    'events.body_removed',
    'events.body_removed_at',
    selectFrom('event_conflicts as other')
      .select(({ fn }) => fn.countAll().as('count'))
      .whereRef('other.environment', '=', 'events.environment')
      .whereRef('other.event_id', '=', 'events.event_id')
      .as('conflicts'),
  ] as const
}

/** Stored events, to be chosen from. */
export function selectSummaries(db: Kysely<Database>) {
  return db.selectFrom('events').select(summaryColumns)
}

type SummaryRow = Omit<
  Selectable<EventsTable>,
  'headers' | 'body' | 'body_bytes' | 'normalized' | 'payment_id'
> & {
  readonly body_bytes: number
  readonly conflicts: number | string | bigint | null
}

/** In the same order. Of a rewritten body the bytes are read, one body in memory at a time. */
export async function toStoredEvents(
  db: Kysely<Database>,
  rows: readonly SummaryRow[],
): Promise<readonly StoredEvent[]> {
  const events: StoredEvent[] = []
  for (const row of rows) events.push({ ...toStoredEvent(row), ...(await loadLeft(db, row)) })
  return events
}

/** What is left of a rewritten body; null: it is as it came, or there is nothing left. */
async function loadLeft(
  db: Kysely<Database>,
  { seq, body_removed: removed }: SummaryRow,
): Promise<Pick<StoredEvent, 'bodySha256' | 'bodyBytes'> | null> {
  if (removed !== 'redacted') return null
  const row = await db.selectFrom('events').select('body').where('seq', '=', seq).executeTakeFirst()
  const left = row?.body ?? null
  return left && { bodySha256: sha256Of(left), bodyBytes: left.length }
}

function toStoredEvent(row: SummaryRow): StoredEvent {
  const { source_kind: kind, source_id: id } = row
  return {
    id: row.event_id,
    environment: row.environment,
    endpoint: row.endpoint,
    generation: row.generation,
    type: row.type,
    disposition: row.disposition,
    reason: row.reason,
    createdAt: row.created_at,
    receivedAt: row.received_at,
    lastReceivedAt: row.last_received_at,
    deliveries: row.deliveries,
    customerId: row.customer_id,
    source: kind === null || id === null ? null : { kind, id },
    // A count is text on PostgreSQL.
    conflicts: Number(row.conflicts),
    normalizerVersion: row.normalizer_version,
    bodySha256: row.body_sha256,
    bodyBytes: row.body_bytes,
    bodyRemoved: originalIn(row),
  }
}

function originalIn(row: SummaryRow): RemovedOriginal | null {
  const removal = removalIn(row)
  return removal && { ...removal, sha256: row.body_sha256, bytes: row.body_bytes }
}

/** Null: the body is there as it came. */
export function removalIn(
  row: Pick<Selectable<EventsTable>, 'body_removed' | 'body_removed_at'>,
): BodyRemoval | null {
  const { body_removed: why, body_removed_at: at } = row
  return why === null || at === null ? null : { why, at }
}
