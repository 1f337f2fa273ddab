import type { Kysely } from 'kysely'
import type { Environment, Normalized } from '../provider/event.js'
import { normalise } from '../provider/normalise.js'
import { loadStoredIds } from '../store/events.js'
import { loadStandingEvents, type StandingEvent } from '../store/replayed-events.js'
import type { Database } from '../store/schema.js'
import { ownIdOf } from './prepare.js'

/** A stored event, and what its bytes say today. */
export interface ReadAgain {
  readonly row: StandingEvent
  /** The id that it has by this reading: no other event has it. */
  readonly eventId: string
  readonly normalized: Normalized
}

export interface ReadAgainAll {
  readonly read: readonly ReadAgain[]
  /** Not read: done by hand, so that nothing but its event was ever there, or with a body that is not there as it came. */
  readonly standing: readonly StandingEvent[]
  /** Left as they stand. */
  readonly duplicates: number
  readonly skipped: number
  /** Those of `standing` whose body was removed. */
  readonly notReplayable: number
  /** Those of `standing` whose body is not the one that came. */
  readonly altered: number
}

/** Whoever signs nothing sends no headers. */
const NO_HEADERS = 'null'

/** Reads stored events from their bytes, as if they came today through the endpoint that they came through. */
export async function readAgain(
  db: Kysely<Database>,
  environment: Environment,
  seqs: readonly number[],
  endpoints: Readonly<Record<string, Environment>>,
): Promise<ReadAgainAll> {
  const read: ReadAgain[] = []
  const standing: StandingEvent[] = []
  let skipped = 0
  let notReplayable = 0
  let altered = 0
  for await (const { row, body, isAltered, receivedAt } of loadStandingEvents(db, seqs)) {
    if (row.headers === NO_HEADERS) standing.push(row)
    else if ((endpoints[row.endpoint] ?? environment) !== environment) skipped += 1
    else if (body === null) {
      standing.push(row)
      if (isAltered) altered += 1
      else notReplayable += 1
    } else {
      const normalized = normalise(body, { environment, receivedAt })
      read.push({ row, normalized, eventId: ownIdOf(normalized) ?? `sha256:${row.body_sha256}` })
    }
  }
  const own = await withIdsOfTheirOwn(db, environment, read)
  return { read: own, standing, skipped, notReplayable, altered, duplicates: read.length - own.length }
}

/** Leaves out the events whose id is another's: of two that say the same id, the one that has it or came first. */
async function withIdsOfTheirOwn(
  db: Kysely<Database>,
  environment: Environment,
  read: readonly ReadAgain[],
): Promise<readonly ReadAgain[]> {
  const renamed = read.filter(({ row, eventId }) => row.event_id !== eventId)
  const taken = new Set(
    await loadStoredIds(
      db,
      environment,
      renamed.map(({ eventId }) => eventId),
    ),
  )
  return read.filter(({ row, eventId }) => {
    if (row.event_id === eventId) return true
    const isFree = !taken.has(eventId)
    taken.add(eventId)
    return isFree
  })
}
