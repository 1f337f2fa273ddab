import type { Kysely, Selectable } from 'kysely'
import type { EventFilter } from '../entitlements/stored-event.js'
import type { NormalizedEvent } from '../provider/event.js'
import { isAltered } from './body-as-it-came.js'
import { removalIn } from './event-rows.js'
import { newestSeq, walkEvents } from './event-walk.js'
import type { DeliveredEvent, RemovedBody, SignedHeaders } from './events.js'
import type { Database, EventConflictsTable, EventsTable } from './schema.js'
import { eventInForm } from './stored-form.js'

/** A body has up to a mebibyte, and only so many are in memory at a time. */
const BODIES_AT_ONCE = 16

/** One delivery as it came, or one thing done by hand: what would make the same event again. */
export interface ExportedDelivery extends Omit<DeliveredEvent, 'bodySha256' | 'removed'> {
  /** The exact bytes; null: they are not there as they were signed, so that nobody could check them any more. */
  readonly body: Buffer | null
  /** Whether that is so though nobody has removed or rewritten them. */
  readonly isAltered: boolean
  /** What the event was read as, where that is all that can be told of it. */
  readonly reading: ExportedReading | null
}

/** An event whose bytes were removed or rewritten. */
export interface ExportedReading {
  readonly event: NormalizedEvent
  /** What is left of the body; null: nothing. */
  readonly left: Buffer | null
  /** Of what came, in lower-case hex. */
  readonly bodySha256: string
  readonly removed: RemovedBody
}

/**
 * All stored events that a filter means, oldest first, each with the other bodies that came under its id right after
 * it: taken in again in this order, the same bodies stand. It ends at the event that was the newest when it began.
 * @param onProgress told of the `seq` that was reached, and of the one to reach
 */
export async function* exportDeliveries(
  db: Kysely<Database>,
  filter: EventFilter,
  onProgress: (reached: number, newest: number) => void,
): AsyncGenerator<ExportedDelivery> {
  const newest = await newestSeq(db)
  for await (const { matching, last } of walkEvents(db, filter, { order: 'oldest first', beyond: null })) {
    const meant = matching.filter((seq) => seq <= newest)
    for (let i = 0; i < meant.length; i += BODIES_AT_ONCE) {
      yield* loadDeliveries(db, meant.slice(i, i + BODIES_AT_ONCE))
    }
    onProgress(Math.min(last, newest), newest)
    if (last >= newest) return
  }
}

async function* loadDeliveries(
  db: Kysely<Database>,
  seqs: readonly number[],
): AsyncGenerator<ExportedDelivery> {
  const rows = await db
    .selectFrom('events')
    .select([...COLUMNS, 'normalized', 'body_removed_at', 'body_bytes'])
    .where('seq', 'in', seqs)
    .orderBy('seq')
    .execute()
  for (const row of rows) {
    yield { ...toDelivery(row), reading: readingIn(row) }
    yield* loadOtherDeliveries(db, row)
  }
}

async function* loadOtherDeliveries(
  db: Kysely<Database>,
  { environment, event_id: eventId }: Pick<DeliveryRow, 'environment' | 'event_id'>,
): AsyncGenerator<ExportedDelivery> {
  const others = db
    .selectFrom('event_conflicts')
    .where('environment', '=', environment)
    .where('event_id', '=', eventId)
  const known = await others.select('body_sha256').orderBy('received_at').orderBy('body_sha256').execute()
  for (const { body_sha256: sha256 } of known) {
    const row = await others.select(COLUMNS).where('body_sha256', '=', sha256).executeTakeFirst()
    if (row !== undefined) yield toDelivery(row)
  }
}

const COLUMNS = [
  'environment',
  'event_id',
  'endpoint',
  'headers',
  'body',
  'body_sha256',
  'received_at',
  'body_removed',
] as const
type DeliveryRow = Pick<Selectable<EventConflictsTable>, (typeof COLUMNS)[number]>

function toDelivery(row: DeliveryRow): ExportedDelivery {
  const headers = JSON.parse(row.headers) as SignedHeaders | null
  // Nobody signed what was done by hand: rewritten, it is as good as before.
  const isAsSigned = headers === null || row.body_removed === null
  const isOther = isAltered(row)
  return {
    environment: row.environment,
    eventId: row.event_id,
    endpoint: row.endpoint,
    receivedAt: row.received_at,
    headers,
    body: isAsSigned && !isOther ? row.body : null,
    isAltered: isOther,
    reading: null,
  }
}

type ReadRow = DeliveryRow & Pick<Selectable<EventsTable>, 'normalized' | 'body_removed_at' | 'body_bytes'>

function readingIn(row: ReadRow): ExportedReading | null {
  const removal = removalIn(row)
  if (row.headers === 'null' || removal === null || row.normalized === null) return null
  return {
    event: eventInForm(row.normalized, row.event_id),
    left: row.body,
    bodySha256: row.body_sha256,
    removed: { ...removal, bytes: row.body_bytes ?? 0 },
  }
}
