import { eventIdOf } from '../ingest/prepare.js'
import type { NormalizedEvent, QuarantineReason } from '../provider/event.js'
import { normalise } from '../provider/normalise.js'
import { loadStoredIds } from '../store/events.js'
import { type JobScope, loadBodies, type ReplayedEvent } from '../store/recompute.js'
import { type Db, ENVIRONMENTS, eventKey } from '../store/schema.js'
import { isAltered } from '../store/stored-form.js'

/** Every configured endpoint, by its name. */
export type Endpoints = NonNullable<JobScope['endpoints']>

/** The result of reading a stored event again. */
export type ReadAgain = EventReadAgain | { readonly kind: NotRead }

/** A stored event, and its current reading. */
export interface EventReadAgain {
  readonly kind: 'read'
  readonly row: ReplayedEvent
  /** Its id in this reading: no other event has it. */
  readonly eventId: string
  /** Null if it can't be used; then `quarantined` says why. */
  readonly event: NormalizedEvent | null
  readonly quarantined: { readonly disposition: 'quarantined'; readonly reason: QuarantineReason } | null
}

/**
 * Why an event was not read: it is a change by hand, whose event is all there is; its endpoint now receives for
 * another environment; its body was removed or altered; another event has its id.
 */
type NotRead = 'byHand' | 'skipped' | 'notReplayable' | 'altered' | 'duplicates'

/** By `eventKey`, the number of the event that took the id in this reading. */
export type TakenIds = Map<string, number>

/** In the place of headers: of changes by hand, and of what Latchkey reported. */
const BY_HAND = 'null'
const REPORTED = '"reported"'

/**
 * Reads stored events from their bytes, as if they arrived now through their endpoint. If two have the same id, the
 * one that has it already, or came first, is read. What was accepted once stays so: how far ahead an event may be dated
 * is a rule for what arrives.
 */
export async function readAgain(db: Db, seqs: readonly number[], endpoints: Endpoints, taken: TakenIds) {
  const found = new Map<number, ReadAgain>()
  const renamed: EventReadAgain[] = []
  for await (const { body, ...row } of loadBodies(db, seqs)) {
    const { environment, endpoint, received_at: receivedAt } = row
    const isReport = row.headers === REPORTED
    // A report came through no endpoint, not even one with the same name.
    const current = isReport ? undefined : endpoints[endpoint]
    if (row.headers === BY_HAND) found.set(row.seq, { kind: 'byHand' })
    else if ((current?.environment ?? environment) !== environment) found.set(row.seq, { kind: 'skipped' })
    else if (row.body_removed !== null) found.set(row.seq, { kind: 'notReplayable' })
    else if (body === null || isAltered({ ...row, body })) found.set(row.seq, { kind: 'altered' })
    else {
      const wasAccepted = row.disposition !== 'quarantined'
      const aheadAtMostMs = wasAccepted ? Number.POSITIVE_INFINITY : current?.aheadAtMostMs
      const normalized = normalise(body, { environment, receivedAt, aheadAtMostMs, isReport })
      const eventId = eventIdOf(normalized, row.body_sha256)
      const event = normalized.ok ? normalized.event : null
      const reason = normalized.ok ? null : normalized.reason
      const quarantined = reason && ({ disposition: 'quarantined', reason } as const)
      const read: EventReadAgain = { kind: 'read', row, eventId, event, quarantined }
      found.set(row.seq, read)
      if (row.event_id !== eventId) renamed.push(read)
    }
  }
  for (const environment of ENVIRONMENTS) {
    const own = renamed.filter(({ row }) => row.environment === environment)
    const ids = own.map(({ eventId }) => eventId)
    const stored = await loadStoredIds(db, environment, ids)
    for (const { eventId, row } of own) {
      const name = eventKey(environment, eventId)
      if (stored.has(eventId) || (taken.get(name) ?? row.seq) !== row.seq)
        found.set(row.seq, { kind: 'duplicates' })
      else taken.set(name, row.seq)
    }
  }
  return found
}
