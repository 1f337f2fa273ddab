import type { Kysely } from 'kysely'
import type { EventFilter, StoredEvent } from '../entitlements/stored-event.js'
import { selectSummaries, toStoredEvents } from './event-rows.js'
import { isMeant, walkEvents } from './event-walk.js'
import type { Database } from './schema.js'

/** A fraction of a second of looking, in turns with all else that the process does. */
const MAX_LOOKED_AT = 20_000

export interface EventPageQuery {
  readonly filter: EventFilter
  /** The page holds what arrived before; null: up to the newest. */
  readonly before: number | null
  /** At most so many. */
  readonly limit: number
}

/** A stretch of the stored events, newest first. */
export interface EventPage {
  readonly items: readonly StoredEvent[]
  /**
   * Where the next page begins, as its `before`; null: there is none. A page may hold fewer than asked for, or
   * nothing, and still have a next one: looking further would have taken too long.
   */
  readonly next: number | null
}

export type ReadEventPage = (query: EventPageQuery) => Promise<EventPage>

/** @param maxLookedAt rows that one page may look at, whether it shows them or not; a full step is always taken */
export function createEventPageReader(
  db: Kysely<Database>,
  { maxLookedAt = MAX_LOOKED_AT } = {},
): ReadEventPage {
  return async ({ filter, before, limit }) => {
    const { found, next } = await find(db, { filter, before, limit }, maxLookedAt)
    if (found.length === 0) return { items: [], next }
    const rows = await selectSummaries(db).where('seq', 'in', found).orderBy('seq', 'desc').execute()
    // Asked again: an event may have stopped waiting since it was found.
    const meant = rows.filter((row) => isMeant(row, filter))
    return { items: await toStoredEvents(db, meant), next }
  }
}

async function find(
  db: Kysely<Database>,
  { filter, before, limit }: EventPageQuery,
  maxLookedAt: number,
): Promise<{ found: readonly number[]; next: number | null }> {
  const found: number[] = []
  let lookedAt = 0
  for await (const step of walkEvents(db, filter, { order: 'newest first', beyond: before })) {
    found.push(...step.matching)
    lookedAt += step.lookedAt
    if (found.length > limit) {
      const shown = found.slice(0, limit)
      return { found: shown, next: shown.at(-1) ?? null }
    }
    if (lookedAt >= maxLookedAt && !step.isLast) return { found, next: step.last }
  }
  return { found, next: null }
}
