import { manualSource } from '../entitlements/by-hand.js'
import { isGrantAct, type SourceKey } from '../entitlements/model.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment } from '../provider/event.js'
import type { Incoming, ManualAct } from './delivery.js'
import { type Lock, lockName } from './locks.js'
import { type PreparedDelivery, prepare } from './prepare.js'

/** What deliveries of one environment are about, as far as they say so themselves. */
export interface Concerns {
  readonly eventIds: readonly string[]
  readonly payments: readonly string[]
  readonly customers: readonly string[]
  /** Each payment may be one, or belong to another. */
  readonly sources: readonly SourceKey[]
}

/** @param more what else they turned out to be about */
export function concernsOf(
  incoming: readonly (PreparedDelivery | ManualAct)[],
  more: readonly Lock[],
): Concerns {
  const eventIds = new Set<string>()
  const [payments, customers] = [new Set<string>(), new Set<string>()]
  const sources = new Map<string, SourceKey>()
  const add = (key: SourceKey) => sources.set(sourceKey(key), key)
  for (const one of incoming) {
    eventIds.add('undated' in one ? one.undated.id : one.eventId)
    const event = eventIn(one)
    if (event?.subject === 'manual' && isGrantAct(event)) add(manualSource(event))
  }
  for (const { kind, id } of [...incoming.flatMap(locksOf), ...more]) {
    if (kind === 'customer') customers.add(id)
    if (kind === 'payment') payments.add(id)
    if (kind === 'payment' || kind === 'subscription') add({ kind, id })
  }
  return {
    eventIds: [...eventIds],
    payments: [...payments],
    customers: [...customers],
    sources: [...sources.values()],
  }
}

/**
 * What no other transaction may change while this is written, as far as it says so itself. An event of a source has no
 * lock of its own: a repeated one names the same source.
 */
export function locksOf(one: PreparedDelivery | ManualAct): readonly Lock[] {
  const { environment } = one
  const event = eventIn(one)
  const isOfSource = event?.subject === 'payment' || event?.subject === 'subscription'
  const [paymentId, subscriptionId] = isOfSource ? [event.paymentId, event.subscriptionId] : [null, null]
  const eventId = 'undated' in one ? one.undated.id : one.eventId
  const locks: (Omit<Lock, 'environment' | 'id'> & { readonly id: string | null })[] = [
    { kind: 'payment', id: paymentId },
    { kind: 'subscription', id: subscriptionId },
    { kind: 'customer', id: event?.customerId ?? null },
    { kind: 'event', id: paymentId === null && subscriptionId === null ? eventId : null },
  ]
  return locks.flatMap(({ kind, id }) => (id === null ? [] : [{ environment, kind, id }]))
}

/** The names of what a delivery locks. */
export function lockNamesOf(incoming: Incoming): readonly string[] {
  return locksOf('undated' in incoming ? incoming : prepare(incoming)).map(lockName)
}

/** By name. */
export function locksOfAll(incoming: readonly (PreparedDelivery | ManualAct)[]): ReadonlyMap<string, Lock> {
  return new Map(incoming.flatMap(locksOf).map((lock) => [lockName(lock), lock]))
}

function eventIn(one: PreparedDelivery | ManualAct) {
  if ('undated' in one) return { ...one.undated, createdAt: 0 }
  return one.normalized.ok ? one.normalized.event : null
}

/** What only a transaction alone may write: every delivery asks who is erased. */
export function isErasure(one: PreparedDelivery | ManualAct): boolean {
  const event = eventIn(one)
  return event?.subject === 'manual' && event.type === 'manual.erased'
}

/** Whether two are of one environment. */
export function isOf(environment: Environment) {
  return (lock: Lock) => lock.environment === environment
}
