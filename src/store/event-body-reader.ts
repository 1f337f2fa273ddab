import type { Kysely, Selectable } from 'kysely'
import type { BodyRemoval } from '../entitlements/stored-event.js'
import type { EventQuery } from './event-reader.js'
import { removalIn } from './event-rows.js'
import type { Database, EventConflictsTable } from './schema.js'

export interface EventBodyQuery extends EventQuery {
  /** Which of the bodies that came under this id, in lower-case hex; null: the one that stands. */
  readonly sha256: string | null
}

export interface EventBody {
  /** Of the bytes as they came, in lower-case hex. */
  readonly sha256: string
  /** Exactly as they came, unless `removed` says otherwise; null: they are there no more. */
  readonly bytes: Buffer | null
  readonly removed: BodyRemoval | null
}

/** Null where no such event is stored, or no such body came under its id. */
export type ReadEventBody = (query: EventBodyQuery) => Promise<EventBody | null>

export function createEventBodyReader(db: Kysely<Database>): ReadEventBody {
  return async (query) => {
    const standing = await loadStandingBody(db, query)
    const { sha256 } = query
    if (sha256 === null || sha256 === standing?.sha256) return standing ?? null
    return (await loadOtherBody(db, { ...query, sha256 })) ?? null
  }
}

const COLUMNS = ['body_sha256', 'body', 'body_removed', 'body_removed_at'] as const

async function loadStandingBody(
  db: Kysely<Database>,
  { environment, eventId }: EventQuery,
): Promise<EventBody | undefined> {
  const row = await db
    .selectFrom('events')
    .select(COLUMNS)
    .where('environment', '=', environment)
    .where('event_id', '=', eventId)
    .executeTakeFirst()
  return row && toBody(row)
}

/** One that came under the id of an event that stood already. */
async function loadOtherBody(
  db: Kysely<Database>,
  { environment, eventId, sha256 }: EventQuery & { readonly sha256: string },
): Promise<EventBody | undefined> {
  const row = await db
    .selectFrom('event_conflicts')
    .select(COLUMNS)
    .where('environment', '=', environment)
    .where('event_id', '=', eventId)
    .where('body_sha256', '=', sha256)
    .executeTakeFirst()
  return row && toBody(row)
}

function toBody(row: Pick<Selectable<EventConflictsTable>, (typeof COLUMNS)[number]>): EventBody {
  return { sha256: row.body_sha256, bytes: row.body, removed: removalIn(row) }
}
