import { type Kysely, sql } from 'kysely'
import { type OtherBody, REASON_TEXT, type StoredEventDetail } from '../entitlements/stored-event.js'
import type { Environment } from '../provider/event.js'
import { removalIn, selectSummaries, toStoredEvents } from './event-rows.js'
import type { SignedHeaders } from './events.js'
import type { Database } from './schema.js'
import { eventInForm } from './stored-form.js'

/** A sender that signs something else at each attempt must not make an answer without end. */
const OTHER_BODIES_SHOWN = 100

export interface EventQuery {
  readonly environment: Environment
  readonly eventId: string
}

/** Null where no such event is stored. */
export type ReadEvent = (query: EventQuery) => Promise<StoredEventDetail | null>

export function createEventReader(db: Kysely<Database>): ReadEvent {
  return async (query) => {
    const row = await selectSummaries(db)
      .select(['events.normalized', 'events.headers'])
      .where('events.environment', '=', query.environment)
      .where('events.event_id', '=', query.eventId)
      .executeTakeFirst()
    if (row === undefined) return null
    const [event] = await toStoredEvents(db, [row])
    if (event === undefined) return null
    return {
      ...event,
      reasonText: row.reason === null ? null : REASON_TEXT[row.reason],
      normalized: row.normalized === null ? null : eventInForm(row.normalized, query.eventId),
      headers: JSON.parse(row.headers) as SignedHeaders | null,
      otherBodies: await loadOtherBodies(db, query),
    }
  }
}

async function loadOtherBodies(
  db: Kysely<Database>,
  { environment, eventId }: EventQuery,
): Promise<readonly OtherBody[]> {
  const rows = await db
    .selectFrom('event_conflicts')
    .select(['body_sha256', 'endpoint', 'received_at', 'deliveries', 'body_removed', 'body_removed_at'])
    .select(sql<number>`coalesce(body_bytes, length(body))`.as('bytes'))
    .where('environment', '=', environment)
    .where('event_id', '=', eventId)
    .orderBy('received_at')
    .orderBy('body_sha256')
    .limit(OTHER_BODIES_SHOWN)
    .execute()
  return rows.map((row) => ({
    sha256: row.body_sha256,
    bytes: row.bytes,
    endpoint: row.endpoint,
    receivedAt: row.received_at,
    deliveries: row.deliveries,
    removed: removalIn(row),
  }))
}
