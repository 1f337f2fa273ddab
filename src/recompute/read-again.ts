import type { Kysely } from 'kysely'
import { ownIdOf } from '../ingest/prepare.js'
import type { Environment, Normalized } from '../provider/event.js'
import { normalise } from '../provider/normalise.js'
import { loadStoredIds } from '../store/events.js'
import { loadStandingEvents, type StandingEvent } from '../store/replayed-events.js'
import type { Database } from '../store/schema.js'

/** The environment of every configured endpoint, by its name. */
export type Endpoints = Readonly<Record<string, Environment>>

export function endpointsOf(
  configured: readonly { readonly name: string; readonly environment: Environment }[],
): Endpoints {
  return Object.fromEntries(configured.map(({ name, environment }) => [name, environment]))
}

/** A stored event, and what its bytes say today. */
export interface ReadAgain {
  readonly kind: 'read'
  readonly row: StandingEvent
  /** The id that it has by this reading: no other event has it. */
  readonly eventId: string
  readonly normalized: Normalized
}

/**
 * Why an event was not read: it was done by hand, so that nothing but its event was ever there; its endpoint receives
 * for another environment now; its body was removed, or is not the one that came; another event has its id.
 */
export type NotRead = 'byHand' | 'skipped' | 'notReplayable' | 'altered' | 'duplicate'

/** By number, the ids that events have taken by this reading. */
export type TakenIds = Map<string, number>

/** Whoever signs nothing sends no headers. */
const NO_HEADERS = 'null'

/**
 * Reads stored events from their bytes, as if they came today through the endpoint that they came through. Of two that
 * say the same id, the one that has it or came first is read.
 */
export async function readAgain(
  db: Kysely<Database>,
  environment: Environment,
  seqs: readonly number[],
  endpoints: Endpoints,
  taken: TakenIds = new Map(),
): Promise<ReadonlyMap<number, ReadAgain | { readonly kind: NotRead }>> {
  const found = new Map<number, ReadAgain | { readonly kind: NotRead }>()
  const renamed: ReadAgain[] = []
  for await (const { row, body, isAltered, receivedAt } of loadStandingEvents(db, seqs)) {
    if (row.headers === NO_HEADERS) found.set(row.seq, { kind: 'byHand' })
    else if ((endpoints[row.endpoint] ?? environment) !== environment) found.set(row.seq, { kind: 'skipped' })
    else if (body === null) found.set(row.seq, { kind: isAltered ? 'altered' : 'notReplayable' })
    else {
      const normalized = normalise(body, { environment, receivedAt })
      const eventId = ownIdOf(normalized) ?? `sha256:${row.body_sha256}`
      const read: ReadAgain = { kind: 'read', row, normalized, eventId }
      found.set(row.seq, read)
      if (row.event_id !== eventId) renamed.push(read)
    }
  }
  const ids = renamed.map(({ eventId }) => eventId)
  const stored = await loadStoredIds(db, environment, ids)
  for (const { eventId, row } of renamed) {
    const name = `${environment} ${eventId}`
    if (stored.has(eventId) || (taken.get(name) ?? row.seq) !== row.seq)
      found.set(row.seq, { kind: 'duplicate' })
    else taken.set(name, row.seq)
  }
  return found
}
