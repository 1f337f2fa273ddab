import type { Transaction } from 'kysely'
import { type Outcome, outcomeOf } from '../entitlements/disposition.js'
import { advanceSource, type FoldedSource, foldSource } from '../entitlements/fold-source.js'
import type { HoldReason, SourceKey, SourceState } from '../entitlements/model.js'
import { compareByTime } from '../entitlements/order.js'
import type { Policy } from '../entitlements/policy.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import type { BatchMemory } from '../store/batch-memory.js'
import { loadSourceEvents, setDispositions } from '../store/events.js'
import type { Database } from '../store/schema.js'
import { deleteSources, loadSources, saveSources } from '../store/sources.js'
import { assignSources, isSourceEvent, type TouchedSource } from './assign-sources.js'

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

/**
 * Folds new events into the sources they touch, and saves these. The events themselves are the caller's to
 * store, in the same transaction; stored ones move along with their payment, and stop waiting where they can.
 * @param fresh events that are not stored yet, each once, in order of arrival
 */
export async function foldIntoSources(
  trx: Transaction<Database>,
  environment: Environment,
  fresh: readonly NormalizedEvent[],
  policy: Policy,
  lately: BatchMemory,
): Promise<FoldedEvents> {
  const { sources, touched, knownPayments } = await assignSources(trx, environment, fresh, lately)
  const keys = [...touched.values()].map(({ key }) => key)
  const saved = await loadSources(trx, environment, keys, lately)

  const folded = new Map<string, FoldedSource | null>()
  for (const [name, source] of touched) {
    folded.set(name, advanceAll(saved.get(name) ?? null, source, policy, knownPayments))
  }
  const unfolded = [...touched].filter(([name]) => folded.get(name) === null)
  // A source that stands nowhere has no stored events, unless some have just moved to it.
  const mayHaveStored = unfolded.filter(([name, { moved }]) => moved || saved.has(name))
  const stored = await loadSourceEvents(
    trx,
    environment,
    mayHaveStored.map(([, { key }]) => key),
  )
  for (const [name, { key, fresh: added }] of unfolded) {
    const events = [...(stored.get(name) ?? []).filter(isSourceEvent), ...added]
    if (events.length > 0) folded.set(name, foldSource(key, events, policy))
  }
  const present = [...folded.values()].filter((source) => source !== null)
  const gone = [...touched].filter(([name]) => folded.get(name) === null).map(([, { key }]) => key)
  await saveSources(trx, environment, present, saved, lately)
  await deleteSources(trx, environment, gone, lately)

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
  return { sources, outcomes: new Map(fresh.map((event) => [event.id, outcome(event)])), changes }
}

/** Takes in what is newer than all before; null: only all events together can tell. */
function advanceAll(
  saved: FoldedSource | null,
  { fresh, moved }: TouchedSource,
  policy: Policy,
  knownPayments: ReadonlySet<string>,
): FoldedSource | null {
  if (moved) return null
  const seen = new Set<string | null>()
  const isNew = (paymentId: string): boolean => !knownPayments.has(paymentId) && !seen.has(paymentId)
  let source = saved
  for (const event of [...fresh].sort(compareByTime)) {
    source = source && advanceSource(source, event, policy, isNew)
    if (event.subject === 'payment') seen.add(event.paymentId)
  }
  return source
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
