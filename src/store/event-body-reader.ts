import type { Kysely } from 'kysely'
import type { EventQuery } from './event-reader.js'
import type { Database } from './schema.js'

export interface EventBodyQuery extends EventQuery {
  /** Which of the bodies that came under this id, in lower-case hex; null: the one that stands. */
  readonly sha256: string | null
}

/** Bytes exactly as they came. */
export interface EventBody {
  /** Lower-case hex. */
  readonly sha256: string
  readonly bytes: Buffer
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

function loadStandingBody(
  db: Kysely<Database>,
  { environment, eventId }: EventQuery,
): Promise<EventBody | undefined> {
  return db
    .selectFrom('events')
    .select(['body_sha256 as sha256', 'body as bytes'])
    .where('environment', '=', environment)
    .where('event_id', '=', eventId)
    .executeTakeFirst()
}

/** One that came under the id of an event that stood already. */
function loadOtherBody(
  db: Kysely<Database>,
  { environment, eventId, sha256 }: EventQuery & { readonly sha256: string },
): Promise<EventBody | undefined> {
  return db
    .selectFrom('event_conflicts')
    .select(['body_sha256 as sha256', 'body as bytes'])
    .where('environment', '=', environment)
    .where('event_id', '=', eventId)
    .where('body_sha256', '=', sha256)
    .executeTakeFirst()
}
