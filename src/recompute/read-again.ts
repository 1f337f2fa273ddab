import type { Kysely } from 'kysely'
import { ownIdOf } from '../ingest/prepare.js'
import { type Environment, NORMALIZER_VERSION, type Normalized } from '../provider/event.js'
import { normalise } from '../provider/normalise.js'
import { loadSeqsBeyond, newestSeq } from '../store/event-walk.js'
import { loadStoredIds } from '../store/events.js'
import { ENVIRONMENTS } from '../store/keys.js'
import { hasSameForm, loadReplayedBodies, type ReplayedEvent } from '../store/replayed-events.js'
import type { Database } from '../store/schema.js'

/** The environment of every configured endpoint, by its name. */
export type Endpoints = Readonly<Record<string, Environment>>

export function endpointsOf(
  configured: readonly { readonly name: string; readonly environment: Environment }[],
): Endpoints {
  return Object.fromEntries(configured.map(({ name, environment }) => [name, environment]))
}

/** What became of reading a stored event again. */
export type ReadAgain = EventReadAgain | { readonly kind: NotRead }

/** A stored event, and what its bytes say today. */
export interface EventReadAgain {
  readonly kind: 'read'
  readonly row: ReplayedEvent
  /** The id that it has by this reading: no other event has it. */
  readonly eventId: string
  readonly normalized: Normalized
}

/**
 * Why an event was not read: it was done by hand, so that nothing but its event was ever there; its endpoint receives
 * for another environment now; its body was removed, or is not the one that came; another event has its id.
 */
type NotRead = 'byHand' | 'skipped' | 'notReplayable' | 'altered' | 'duplicate'

/** By number, the ids that events have taken by this reading. */
export type TakenIds = Map<string, number>

/** What was done by hand came without headers. */
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
): Promise<ReadonlyMap<number, ReadAgain>> {
  const found = new Map<number, ReadAgain>()
  const renamed: EventReadAgain[] = []
  for await (const { row, body, isAltered, receivedAt } of loadReplayedBodies(db, seqs)) {
    if (row.headers === NO_HEADERS) found.set(row.seq, { kind: 'byHand' })
    else if ((endpoints[row.endpoint] ?? environment) !== environment) found.set(row.seq, { kind: 'skipped' })
    else if (body === null) found.set(row.seq, { kind: isAltered ? 'altered' : 'notReplayable' })
    else {
      const normalized = normalise(body, { environment, receivedAt })
      const eventId = ownIdOf(normalized) ?? `sha256:${row.body_sha256}`
      const read: EventReadAgain = { kind: 'read', row, normalized, eventId }
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

/** Bounds the memory: what the bodies were read as is kept for so many. */
const COMPARED_AT_ONCE = 500

export interface ComparedReadings {
  /** How many bodies were read again. */
  readonly read: number
  /** How many of them say something else than what is stored of them. */
  readonly otherwise: number
  /** One of the earliest to arrive; null: none does. */
  readonly first: { readonly environment: Environment; readonly eventId: string } | null
}

/**
 * Reads every body that is there as it came, and compares what the program of today understands with what is stored.
 * Where a source has put its event, and what became of it there, is not the reading's: verifying compares that.
 */
export async function compareReadings(db: Kysely<Database>, endpoints: Endpoints): Promise<ComparedReadings> {
  let compared: ComparedReadings = { read: 0, otherwise: 0, first: null }
  const end = await newestSeq(db)
  for (let reached = 0; reached < end; ) {
    const rows = await loadSeqsBeyond(db, reached, end, COMPARED_AT_ONCE)
    for (const environment of ENVIRONMENTS) {
      const seqs = rows.filter((row) => row.environment === environment).map(({ seq }) => seq)
      const found = await readAgain(db, environment, seqs, endpoints)
      const read = [...found.values()].filter((one) => one.kind === 'read')
      const changed = read.filter(saysSomethingElse)
      const eventId = changed[0]?.row.event_id
      compared = {
        read: compared.read + read.length,
        otherwise: compared.otherwise + changed.length,
        first: compared.first ?? (eventId === undefined ? null : { environment, eventId }),
      }
    }
    reached = rows.at(-1)?.seq ?? end
  }
  return compared
}

/** Which program has read it is no difference. */
function saysSomethingElse({ row, eventId, normalized }: EventReadAgain): boolean {
  const stored = { ...row, normalizer_version: NORMALIZER_VERSION }
  const { disposition, reason } = row
  const outcome = normalized.ok
    ? { disposition, reason }
    : { disposition: 'quarantined' as const, reason: normalized.reason }
  const event = normalized.ok ? normalized.event : null
  const isSameOutcome = disposition === outcome.disposition && reason === outcome.reason
  return !isSameOutcome || !hasSameForm(stored, { eventId, ...outcome, event, source: null })
}
