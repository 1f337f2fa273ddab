import type { Transaction } from 'kysely'
import { type Outcome, outcomeOf } from '../entitlements/disposition.js'
import { foldSource } from '../entitlements/fold-source.js'
import type { HoldReason, SourceKey, SourceState } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import type { SourceEvent } from '../entitlements/reading.js'
import { linkOf, sourceOf } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { assignPaymentEvents, loadSourceEvents, setDispositions } from '../store/events.js'
import { sourceKey } from '../store/keys.js'
import { loadLinks, saveLinks } from '../store/payment-links.js'
import type { Database } from '../store/schema.js'
import { deleteSources, loadSources, saveSources } from '../store/sources.js'

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
): Promise<FoldedEvents> {
  const links = fresh.map(linkOf).filter((link) => link !== null)
  const relinked = await saveLinks(trx, environment, links)
  const paymentIds = new Set(fresh.map((event) => (event.subject === 'payment' ? event.paymentId : null)))
  const known = await loadLinks(
    trx,
    environment,
    [...paymentIds].filter((id) => id !== null),
  )
  const sources = new Map(
    fresh.map((event) => [event.id, sourceOf(event, (paymentId) => known.get(paymentId)?.subscriptionId)]),
  )

  const touched = new Map<string, { key: SourceKey; causedBy: string; fresh: SourceEvent[] }>()
  const touch = (key: SourceKey, causedBy: string): SourceEvent[] => {
    const entry = touched.get(sourceKey(key)) ?? { key, causedBy, fresh: [] }
    entry.causedBy = causedBy
    touched.set(sourceKey(key), entry)
    return entry.fresh
  }
  for (const { paymentId, from, to, linkedBy } of relinked) {
    touch(from === null ? { kind: 'payment', id: paymentId } : { kind: 'subscription', id: from }, linkedBy)
    touch({ kind: 'subscription', id: to }, linkedBy)
  }
  await assignPaymentEvents(
    trx,
    environment,
    relinked.map(({ paymentId, to }) => ({ paymentId, source: { kind: 'subscription', id: to } })),
  )
  for (const event of fresh) {
    const key = sources.get(event.id) ?? null
    if (key !== null && isSourceEvent(event)) touch(key, event.id).push(event)
  }

  const keys = [...touched.values()].map(({ key }) => key)
  const before = await loadSources(trx, environment, keys)
  const storedEvents = await loadSourceEvents(trx, environment, keys)
  const changes = [...touched].map(([text, { key, causedBy, fresh: added }]): SourceChange => {
    const events = [...(storedEvents.get(text) ?? []).filter(isSourceEvent), ...added]
    const after = events.length === 0 ? null : foldSource(key, events, policy)
    return { key, before: before.get(text) ?? null, after, causedBy }
  })
  await saveSources(
    trx,
    environment,
    changes.map(({ after }) => after).filter((state) => state !== null),
  )
  await deleteSources(
    trx,
    environment,
    changes.filter(({ after }) => after === null).map(({ key }) => key),
  )

  const isHeld = holdsOf(changes.map(({ after }) => after))
  const wasHeld = holdsOf(changes.map((change) => change.before))
  await setDispositions(trx, environment, movedHolds(wasHeld, isHeld, new Set(sources.keys())))
  const outcomes = new Map(
    fresh.map((event) => [
      event.id,
      outcomeOf(event, sources.get(event.id) ?? null, isHeld.get(event.id), policy),
    ]),
  )
  return { sources, outcomes, changes }
}

function isSourceEvent(event: NormalizedEvent): event is SourceEvent {
  return event.subject === 'payment' || event.subject === 'subscription'
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
