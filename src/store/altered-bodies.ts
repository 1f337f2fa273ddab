import { type Kysely, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { isAltered } from './body-as-it-came.js'
import type { Database } from './schema.js'

/** A body has up to a mebibyte, and only so many are in memory at a time. */
const BODIES_AT_ONCE = 16

/** How many bodies were compared with their hashes, and which of them are not what came. */
export interface ComparedBodies {
  readonly compared: number
  readonly altered: number
  /** Null: none is. */
  readonly first: { readonly environment: Environment; readonly eventId: string } | null
}

/**
 * Compares every stored body with the hash that it came with. What retention or an erasure removed or rewrote is
 * passed over. Reads all of them, a few in each question, so that a daemon beside it is not held up.
 */
export async function compareBodies(db: Kysely<Database>): Promise<ComparedBodies> {
  let found: ComparedBodies = { compared: 0, altered: 0, first: null }
  for await (const row of storedBodies(db)) {
    const isOther = isAltered(row)
    const here = { environment: row.environment, eventId: row.event_id }
    found = {
      compared: found.compared + 1,
      altered: found.altered + (isOther ? 1 : 0),
      first: found.first ?? (isOther ? here : null),
    }
  }
  return found
}

async function* storedBodies(db: Kysely<Database>) {
  yield* standingBodies(db)
  yield* otherBodies(db)
}

const COLUMNS = ['environment', 'event_id', 'body_sha256', 'body', 'body_removed'] as const

async function* standingBodies(db: Kysely<Database>) {
  let reached = 0
  for (;;) {
    const rows = await db
      .selectFrom('events')
      .select(['seq', ...COLUMNS])
      .where('seq', '>', reached)
      .where('body_removed', 'is', null)
      .orderBy('seq')
      .limit(BODIES_AT_ONCE)
      .execute()
    yield* rows
    const last = rows.at(-1)
    if (last === undefined) return
    reached = last.seq
  }
}

/** Those that came under the id of an event that stood already. */
async function* otherBodies(db: Kysely<Database>) {
  let reached: readonly [environment: string, eventId: string, sha256: string] = ['', '', '']
  for (;;) {
    const rows = await db
      .selectFrom('event_conflicts')
      .select(COLUMNS)
      .where(sql<boolean>`(environment, event_id, body_sha256) > (${sql.join(reached)})`)
      .where('body_removed', 'is', null)
      .orderBy('environment')
      .orderBy('event_id')
      .orderBy('body_sha256')
      .limit(BODIES_AT_ONCE)
      .execute()
    yield* rows
    const last = rows.at(-1)
    if (last === undefined) return
    reached = [last.environment, last.event_id, last.body_sha256]
  }
}
