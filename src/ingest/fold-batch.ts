import { type ArrivedEvent, newerLinks, outcomeOf } from '../entitlements/derive.js'
import { foldSource } from '../entitlements/fold-source.js'
import { extendHistory, type HistoryEvent, historyEvent, packHistory } from '../entitlements/history.js'
import type { HoldReason, SourceKey, SourceState } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import { sourceKey, sourceOf } from '../entitlements/source-of.js'
import type { Environment } from '../provider/event.js'
import { pipelined } from '../store/bulk.js'
import { placeEvents, setDispositions } from '../store/events.js'
import type { Tx } from '../store/schema.js'
import { deleteSources, readHistory, type StoredSource, saveLinks, saveSources } from '../store/sources.js'
import type { Known } from './known.js'

/** A source before and after: null if it did not exist, or has no events any more. */
export type SourceChange = FoldedBatch['changes'][number]

/** What the new events change. */
export type FoldedBatch = Awaited<ReturnType<typeof foldBatch>>

/** A payment that a new event links to another source than before. */
interface LinkedMove {
  readonly paymentId: string
  readonly from: SourceKey
  readonly to: SourceKey
  /** The id of that event. */
  readonly linkedBy: string
}

interface TouchedSource {
  readonly key: SourceKey
  readonly saved: StoredSource | undefined
  /** Its stored events, including those that move to it with their payment. */
  stored: readonly HistoryEvent[]
  /** The numbers of the stored events that moved to it. */
  readonly gained: number[]
  /** Whether stored events moved to it, or left it. */
  isMoved: boolean
  readonly fresh: HistoryEvent[]
  causedBy: string
}

/**
 * Folds new events into their sources, each from its whole history. Writes nothing: `saveFolded` does. Stored events move
 * with their payment, and stop waiting if they can.
 * @param fresh events that are not stored yet, each once, in order of arrival, with their future numbers
 */
export async function foldBatch(
  known: Pick<Known, 'links' | 'sources'>,
  fresh: readonly ArrivedEvent[],
  policy: Policy,
) {
  const { news, subscriptionOf, moves } = await readLinks(known, fresh)
  const sources = new Map(fresh.map(({ event }) => [event.id, sourceOf(event, subscriptionOf)]))
  const saved = await known.sources(keysIn(sources, moves))
  const touched = touchSources(fresh, sources, moves, saved)

  const folded = [...touched.values()].map((source) => ({ ...source, after: foldTouched(source, policy) }))
  const kept = folded.flatMap(({ saved, after }) =>
    after === null
      ? []
      : [{ ...after, saved: saved && { seq: saved.seq, customerId: saved.state.customerId } }],
  )
  const gone = folded.flatMap(({ key, saved, after }) => (after === null && saved !== undefined ? [key] : []))
  const moved = folded.flatMap(({ key: source, gained }) => gained.map((seq) => ({ seq, source })))
  const changes = folded.map(({ key, saved, stored, isMoved, causedBy, after: folded }) => {
    const [before, after] = [saved?.state ?? null, folded?.state ?? null]
    const customerId = after?.customerId
    const isOfOther = before?.customerId !== customerId
    const strangers = stored.filter((event) => event.customerId !== null && event.customerId !== customerId)
    return {
      key,
      before,
      after,
      /** The last to arrive of the new events in it. */
      causedBy,
      /** Its stored events that name another customer than its new one, whose facts may be new. */
      strangers: isMoved || isOfOther ? strangers.map(({ seq }) => seq) : [],
      /** Whether stored events came to it, or to its customer. */
      hasGained: isMoved || (before !== null && isOfOther),
    }
  })
  const isHeld = holdsOf(changes.map(({ after }) => after))
  const wasHeld = holdsOf(changes.map(({ before }) => before))
  const outcomes = new Map(
    fresh.map(({ event }) => [
      event.id,
      outcomeOf(event, sources.get(event.id) ?? null, isHeld.get(event.id), policy),
    ]),
  )
  return {
    /** By event id. */
    sources,
    outcomes,
    changes,
    links: news,
    kept,
    gone,
    /** The stored events that go to another source. */
    moved,
    holds: movedHolds(wasHeld, isHeld, sources),
  }
}

/** Saves the sources, the payments' links, and what changes about stored events. */
export async function saveFolded(trx: Tx, environment: Environment, folded: FoldedBatch): Promise<void> {
  await pipelined([
    saveLinks(trx, environment, folded.links),
    saveSources(trx, environment, folded.kept),
    deleteSources(trx, environment, folded.gone),
    placeEvents(trx, folded.moved),
    setDispositions(trx, environment, folded.holds),
  ])
}

/** The subscription of each payment: if events disagree, the newest counts. */
async function readLinks({ links }: Pick<Known, 'links'>, fresh: readonly ArrivedEvent[]) {
  const paymentIds = new Set<string>()
  for (const { event } of fresh) {
    if ((event.subject === 'payment' || event.subject === 'subscription') && event.paymentId !== null) {
      paymentIds.add(event.paymentId)
    }
  }
  const stored = await links([...paymentIds])
  const news = newerLinks(fresh, stored)
  const moves: LinkedMove[] = []
  for (const { paymentId, subscriptionId, linkedBy } of news.values()) {
    const before = stored.get(paymentId)?.subscriptionId
    if (before === subscriptionId) continue
    const from: SourceKey =
      before === undefined ? { kind: 'payment', id: paymentId } : { kind: 'subscription', id: before }
    moves.push({ paymentId, linkedBy, from, to: { kind: 'subscription', id: subscriptionId } })
  }
  const subscriptionOf = (id: string) => (news.get(id) ?? stored.get(id))?.subscriptionId
  return { news: [...news.values()], subscriptionOf, moves }
}

/** Every source that may change, each once. */
function keysIn(sources: ReadonlyMap<string, SourceKey | null>, moves: readonly LinkedMove[]) {
  const keys = new Map<string, SourceKey>()
  for (const key of sources.values()) if (key !== null) keys.set(sourceKey(key), key)
  for (const { from, to } of moves) keys.set(sourceKey(from), from).set(sourceKey(to), to)
  return [...keys.values()]
}

/** The events to fold each source from, by `sourceKey`. */
function touchSources(
  fresh: readonly ArrivedEvent[],
  sources: ReadonlyMap<string, SourceKey | null>,
  moves: readonly LinkedMove[],
  saved: ReadonlyMap<string, StoredSource>,
): ReadonlyMap<string, TouchedSource> {
  const touched = new Map<string, TouchedSource>()
  const touch = (key: SourceKey, causedBy: string): TouchedSource => {
    const name = sourceKey(key)
    const known = touched.get(name)
    if (known !== undefined) {
      known.causedBy = causedBy
      return known
    }
    const stored = saved.get(name)
    const events = stored === undefined ? [] : readHistory(stored)
    const source = { key, saved: stored, stored: events, isMoved: false, gained: [], fresh: [], causedBy }
    touched.set(name, source)
    return source
  }
  for (const move of moves) {
    // Most payments are linked by their first event, and have none to move.
    if (!saved.has(sourceKey(move.from))) continue
    const from = touch(move.from, move.linkedBy)
    const going = from.stored.filter((event) => goes(event, move))
    if (going.length === 0) continue
    const to = touch(move.to, move.linkedBy)
    to.stored = [...to.stored, ...going]
    to.gained.push(...going.map(({ seq }) => seq))
    from.stored = from.stored.filter((event) => !goes(event, move))
    from.isMoved = to.isMoved = true
  }
  for (const { seq, event } of fresh) {
    const key = sources.get(event.id) ?? null
    const read = key === null ? null : historyEvent(seq, event)
    if (key === null || read === null) continue
    touch(key, event.id).fresh.push(read)
  }
  for (const [name, source] of touched) {
    if (!source.isMoved && source.fresh.length === 0) touched.delete(name)
  }
  return touched
}

/** Subscription events stay with their subscription, even if they name a payment. */
function goes(event: HistoryEvent, { paymentId }: LinkedMove): boolean {
  return event.subject === 'payment' && event.paymentId === paymentId
}

/** Null if it has no events left. */
function foldTouched({ key, saved, stored, isMoved, fresh }: TouchedSource, policy: Policy) {
  const events = [...stored, ...fresh]
  if (events.length === 0) return null
  // A number is drawn under the lock of its source, but an event may have come under the source's lock of another.
  const isInOrder = !isMoved && (stored.at(-1)?.seq ?? 0) < (fresh[0]?.seq ?? Number.POSITIVE_INFINITY)
  if (!isInOrder) events.sort((a, b) => a.seq - b.seq)
  const isLonger = saved !== undefined && isInOrder
  const history = isLonger ? extendHistory(saved.history, stored, fresh) : packHistory(events)
  return { state: foldSource(key, events, policy), history }
}

/** By event id. */
type Holds = ReadonlyMap<string, HoldReason>

function holdsOf(states: readonly (SourceState | null)[]): Holds {
  return new Map(states.flatMap((state) => (state === null ? [] : Object.entries(state.held))))
}

/** Changes of stored events: some no longer wait, or wait for something else. */
function movedHolds(before: Holds, after: Holds, fresh: ReadonlyMap<string, unknown>) {
  const settled = [...before.keys()].filter((id) => !after.has(id))
  const waiting = [...after].filter(([id, reason]) => !fresh.has(id) && before.get(id) !== reason)
  return [
    ...settled.map((eventId) => ({ eventId, disposition: 'applied', reason: null }) as const),
    ...waiting.map(([eventId, reason]) => ({ eventId, disposition: 'held', reason }) as const),
  ]
}
