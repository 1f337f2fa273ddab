import type { Kysely, Selectable } from 'kysely'
import type { BodyRemoval } from '../entitlements/stored-event.js'
import { bodyAltered, isAltered, sha256Of } from './body-as-it-came.js'
import type { EventQuery } from './event-reader.js'
import { removalIn } from './event-rows.js'
import type { Database, EventConflictsTable } from './schema.js'

export interface EventBodyQuery extends EventQuery {
  /** Which of the bodies that came under this id, by the hash it came with, in lower-case hex; null: the one that stands. */
  readonly sha256: string | null
}

export interface EventBody {
  /** Of `bytes`, in lower-case hex; where they are there no more, of what came. */
  readonly sha256: string
  /** Exactly as they came, unless `removed` says otherwise; null: they are there no more. */
  readonly bytes: Buffer | null
  readonly removed: BodyRemoval | null
}

/**
 * Null where no such event is stored, or no such body came under its id.
 * @throws {LatchkeyError} `body_altered` where the bytes are not the ones that came, though nobody has removed any
 */
export type ReadEventBody = (query: EventBodyQuery) => Promise<EventBody | null>

export function createEventBodyReader(db: Kysely<Database>): ReadEventBody {
  return async (query) => {
    const { eventId, sha256 } = query
    const standing = await loadStandingBody(db, query)
    if (standing !== undefined && isMeant(standing, sha256)) return toBody(standing, eventId)
    const other = sha256 === null ? undefined : await loadOtherBody(db, { ...query, sha256 })
    return other === undefined ? null : toBody(other, eventId)
  }
}

/** What is left of a rewritten one is known by its own hash too, which is the one that is shown. */
function isMeant(row: BodyRow, sha256: string | null): boolean {
  return sha256 === null || sha256 === row.body_sha256 || sha256 === hashOfLeft(row)
}

const COLUMNS = ['body_sha256', 'body', 'body_removed', 'body_removed_at'] as const
type BodyRow = Pick<Selectable<EventConflictsTable>, (typeof COLUMNS)[number]>

async function loadStandingBody(
  db: Kysely<Database>,
  { environment, eventId }: EventQuery,
): Promise<BodyRow | undefined> {
  return db
    .selectFrom('events')
    .select(COLUMNS)
    .where('environment', '=', environment)
    .where('event_id', '=', eventId)
    .executeTakeFirst()
}

/** One that came under the id of an event that stood already. */
async function loadOtherBody(
  db: Kysely<Database>,
  { environment, eventId, sha256 }: EventQuery & { readonly sha256: string },
): Promise<BodyRow | undefined> {
  return db
    .selectFrom('event_conflicts')
    .select(COLUMNS)
    .where('environment', '=', environment)
    .where('event_id', '=', eventId)
    .where('body_sha256', '=', sha256)
    .executeTakeFirst()
}

function toBody(row: BodyRow, eventId: string): EventBody {
  if (isAltered(row)) throw bodyAltered(eventId)
  return { sha256: hashOfLeft(row) ?? row.body_sha256, bytes: row.body, removed: removalIn(row) }
}

/** Null where a body is as it came, or gone. */
function hashOfLeft({ body, body_removed: removed }: BodyRow): string | null {
  return removed === null || body === null ? null : sha256Of(body)
}
