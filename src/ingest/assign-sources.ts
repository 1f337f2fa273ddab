import type { Transaction } from 'kysely'
import type { FoldableEvent } from '../entitlements/fold-source.js'
import { isGrantAct } from '../entitlements/manual-source.js'
import type { SourceKey } from '../entitlements/model.js'
import { linkOf, sourceOf } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import type { BatchMemory } from '../store/batch-memory.js'
import { loadKnownPayments, movePaymentEvents } from '../store/events.js'
import { paymentKey, sourceKey } from '../store/keys.js'
import { learnLinks } from '../store/payment-links.js'
import type { Database } from '../store/schema.js'

/** A source that new events touch. */
export interface TouchedSource {
  readonly key: SourceKey
  /** New events of it, in order of arrival. */
  readonly fresh: FoldableEvent[]
  /** Whether stored events came to it, or left it, with their payment: all of its events must be folded again. */
  moved: boolean
  /** The last to arrive of the new events that touched it. */
  causedBy: string
}

export interface Assignment {
  /** By event id, for the new events. */
  readonly sources: ReadonlyMap<string, SourceKey | null>
  /** By `sourceKey`. */
  readonly touched: ReadonlyMap<string, TouchedSource>
  /** Payments of which events are stored already. */
  readonly knownPayments: ReadonlySet<string>
}

/** Finds the source of every new event, and moves stored ones to where the new ones say that they belong. */
export async function assignSources(
  trx: Transaction<Database>,
  environment: Environment,
  fresh: readonly NormalizedEvent[],
  lately?: BatchMemory,
): Promise<Assignment> {
  const paymentIds = [...new Set(fresh.map(paymentOf).filter((id) => id !== null))]
  const knownPayments = await loadKnownPayments(trx, environment, paymentIds, lately)
  const namings = fresh.map(linkOf).filter((link) => link !== null)
  const { links, changes } = await learnLinks(trx, environment, paymentIds, namings, lately)
  const sources = new Map(
    fresh.map((event) => [event.id, sourceOf(event, (paymentId) => links.get(paymentId)?.subscriptionId)]),
  )

  const touched = new Map<string, TouchedSource>()
  const touch = (key: SourceKey, causedBy: string): TouchedSource => {
    const source = touched.get(sourceKey(key)) ?? { key, fresh: [], moved: false, causedBy }
    source.causedBy = causedBy
    touched.set(sourceKey(key), source)
    return source
  }
  const moves = changes
    .filter(({ paymentId }) => knownPayments.has(paymentId))
    .map(({ paymentId, from, to, linkedBy }) => ({
      paymentId,
      linkedBy,
      from: from === null ? paymentSource(paymentId) : subscriptionSource(from),
      to: subscriptionSource(to),
    }))
  for (const { from, to, linkedBy } of moves) {
    touch(from, linkedBy).moved = true
    touch(to, linkedBy).moved = true
  }
  await movePaymentEvents(trx, environment, moves)
  for (const event of fresh) {
    const key = sources.get(event.id) ?? null
    if (key !== null && isSourceEvent(event)) touch(key, event.id).fresh.push(event)
  }
  for (const event of fresh) {
    if (event.subject !== 'payment' || event.paymentId === null) continue
    lately?.payments.set(paymentKey(environment, event.paymentId), true)
  }
  return { sources, touched, knownPayments }
}

/** Whether a source is folded from such events. */
export function isSourceEvent(event: NormalizedEvent): event is FoldableEvent {
  switch (event.subject) {
    case 'payment':
    case 'subscription':
      return true
    case 'manual':
      return isGrantAct(event)
    case 'customer':
    case 'other':
      return false
    default:
      return event satisfies never
  }
}

function paymentSource(id: string): SourceKey {
  return { kind: 'payment', id }
}

function subscriptionSource(id: string): SourceKey {
  return { kind: 'subscription', id }
}

function paymentOf(event: NormalizedEvent): string | null {
  return event.subject === 'payment' || event.subject === 'subscription' ? event.paymentId : null
}
