import type { Transaction } from 'kysely'
import { type Outcome, outcomeOf } from '../entitlements/disposition.js'
import { foldSource } from '../entitlements/fold-source.js'
import { extendHistory, type HistoryEvent, historyEvent, packHistory } from '../entitlements/history.js'
import type { HoldReason, SourceKey, SourceState } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { movePaymentEvents, setDispositions } from '../store/events.js'
import type { Database } from '../store/schema.js'
import { deleteSources, loadSources, readHistory, type StoredSource, saveSources } from '../store/sources.js'
import { type Assignment, assignSources, type LinkedMove } from './assign-sources.js'

/** A source before and after: null where it did not exist, or has no events any more. */
export interface SourceChange {
  readonly key: SourceKey
  readonly before: SourceState | null
  readonly after: SourceState | null
  /** The last to arrive of the new events that touched it. */
  readonly causedBy: string
}

export interface FoldedEvents {
  /** By event id, for the new events. */
  readonly sources: ReadonlyMap<string, SourceKey | null>
  readonly outcomes: ReadonlyMap<string, Outcome>
  readonly changes: readonly SourceChange[]
}

/** An event that is not stored yet, and the number that it will be stored under. */
export interface FreshEvent {
  readonly seq: number
  readonly event: NormalizedEvent
}

/** A source that new events touch. */
interface TouchedSource {
  readonly key: SourceKey
  /** Its stored events, those that come to it with their payment among them. */
  stored: readonly HistoryEvent[]
  /** Whether stored events came to it, or left it. */
  isMoved: boolean
  readonly fresh: HistoryEvent[]
  causedBy: string
}

/**
 * Folds new events into the sources they touch, each from its whole history, and saves these. The events themselves
 * are the caller's to store, in the same transaction; stored ones move along with their payment, and stop waiting
 * where they can.
 * @param fresh events that are not stored yet, each once, in order of arrival
 */
export async function foldIntoSources(
  trx: Transaction<Database>,
  environment: Environment,
  fresh: readonly FreshEvent[],
  policy: Policy,
): Promise<FoldedEvents> {
  const events = fresh.map(({ event }) => event)
  const assignment = await assignSources(trx, environment, events)
  const { sources } = assignment
  const saved = await loadSources(trx, environment, keysIn(assignment))
  const { touched, moves } = touchSources(fresh, assignment, saved)
  await movePaymentEvents(trx, environment, moves)

  const folded = new Map<string, StoredSource | null>()
  for (const [name, source] of touched) folded.set(name, foldTouched(source, saved.get(name), policy))
  const present = [...folded.values()].filter((source) => source !== null)
  const gone = [...touched].filter(([name]) => folded.get(name) === null).map(([, { key }]) => key)
  await saveSources(trx, environment, present, saved)
  await deleteSources(trx, environment, gone)

  const changes = [...touched].map(([name, { key, causedBy }]) => ({
    key,
    causedBy,
    before: saved.get(name)?.state ?? null,
    after: folded.get(name)?.state ?? null,
  }))
  const isHeld = holdsOf(changes.map(({ after }) => after))
  const wasHeld = holdsOf(changes.map(({ before }) => before))
  await setDispositions(trx, environment, movedHolds(wasHeld, isHeld, new Set(sources.keys())))
  const outcome = (event: NormalizedEvent): Outcome =>
    outcomeOf(event, sources.get(event.id) ?? null, isHeld.get(event.id), policy)
  return { sources, outcomes: new Map(events.map((event) => [event.id, outcome(event)])), changes }
}

/** Every source that may be touched, each once. */
function keysIn({ sources, moves }: Assignment): readonly SourceKey[] {
  const keys = new Map<string, SourceKey>()
  for (const key of [...moves.flatMap(({ from, to }) => [from, to]), ...sources.values()]) {
    if (key !== null) keys.set(sourceKey(key), key)
  }
  return [...keys.values()]
}

/** Gathers what each source is to be folded from, by `sourceKey`, and which payments have stored events to move. */
function touchSources(
  fresh: readonly FreshEvent[],
  { sources, moves }: Assignment,
  saved: ReadonlyMap<string, StoredSource>,
): { readonly touched: ReadonlyMap<string, TouchedSource>; readonly moves: readonly LinkedMove[] } {
  const histories = new Map([...saved].map(([name, source]) => [name, readHistory(source)]))
  const touched = new Map<string, TouchedSource>()
  const touch = (key: SourceKey, causedBy: string): TouchedSource => {
    const name = sourceKey(key)
    const stored = histories.get(name) ?? []
    const source = touched.get(name) ?? { key, stored, isMoved: false, fresh: [], causedBy }
    source.causedBy = causedBy
    touched.set(name, source)
    return source
  }
  // Most payments are linked by their first event, and have none to move.
  const made = moves.filter((move) => histories.get(sourceKey(move.from))?.some((event) => goes(event, move)))
  for (const move of made) {
    const [from, to] = [touch(move.from, move.linkedBy), touch(move.to, move.linkedBy)]
    to.stored = [...to.stored, ...from.stored.filter((event) => goes(event, move))]
    from.stored = from.stored.filter((event) => !goes(event, move))
    from.isMoved = to.isMoved = true
  }
  for (const { seq, event } of fresh) {
    const key = sources.get(event.id) ?? null
    const read = key === null ? null : historyEvent(seq, event)
    if (key !== null && read !== null) touch(key, event.id).fresh.push(read)
  }
  return { touched, moves: made }
}

/** Subscription events stay with the subscription they are about, whatever payment they name. */
function goes(event: HistoryEvent, { paymentId }: LinkedMove): boolean {
  return event.subject === 'payment' && event.paymentId === paymentId
}

/** Null where no event is left of it. */
function foldTouched(
  { key, stored, isMoved, fresh }: TouchedSource,
  saved: StoredSource | undefined,
  policy: Policy,
): StoredSource | null {
  const events = [...stored, ...fresh]
  if (events.length === 0) return null
  if (isMoved) events.sort((a, b) => a.seq - b.seq)
  const isLonger = saved !== undefined && !isMoved
  const history = isLonger ? extendHistory(saved.history, stored, fresh) : packHistory(events)
  return { state: foldSource(key, events, policy).state, history }
}

function holdsOf(states: readonly (SourceState | null)[]): Map<string, HoldReason> {
  return new Map(states.flatMap((state) => Object.entries(state?.held ?? {})))
}

/** What changes for stored events: some need not wait any more, or wait for something else. */
function movedHolds(
  before: ReadonlyMap<string, HoldReason>,
  after: ReadonlyMap<string, HoldReason>,
  fresh: ReadonlySet<string>,
): ({ readonly eventId: string } & Outcome)[] {
  const settled = [...before.keys()]
    .filter((eventId) => !after.has(eventId))
    .map((eventId) => ({ eventId, disposition: 'applied', reason: null }) as const)
  const waiting = [...after]
    .filter(([eventId, reason]) => !fresh.has(eventId) && before.get(eventId) !== reason)
    .map(([eventId, reason]) => ({ eventId, disposition: 'held', reason }) as const)
  return [...settled, ...waiting]
}
