import { manualSource } from '../entitlements/by-hand.js'
import { isGrantAct, type SourceKey } from '../entitlements/model.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { ManualAct } from './delivery.js'
import type { PreparedDelivery } from './prepare.js'

/** What deliveries of one environment are about, as far as they say so themselves. */
export interface Concerns {
  readonly eventIds: readonly string[]
  readonly payments: readonly string[]
  readonly customers: readonly string[]
  /** Each payment may be one, or belong to another. */
  readonly sources: readonly SourceKey[]
}

export function concernsOf(incoming: readonly (PreparedDelivery | ManualAct)[]): Concerns {
  const [eventIds, payments, customers] = [new Set<string>(), new Set<string>(), new Set<string>()]
  const sources = new Map<string, SourceKey>()
  const add = (key: SourceKey) => sources.set(sourceKey(key), key)
  for (const one of incoming) {
    const event =
      'undated' in one ? { ...one.undated, createdAt: 0 } : one.normalized.ok ? one.normalized.event : null
    eventIds.add('undated' in one ? one.undated.id : one.eventId)
    if (event === null) continue
    if (event.customerId !== null) customers.add(event.customerId)
    if (event.subject === 'manual' && isGrantAct(event)) add(manualSource(event))
    if (event.subject !== 'payment' && event.subject !== 'subscription') continue
    if (event.paymentId !== null) {
      payments.add(event.paymentId)
      add({ kind: 'payment', id: event.paymentId })
    }
    if (event.subscriptionId !== null) add({ kind: 'subscription', id: event.subscriptionId })
  }
  return {
    eventIds: [...eventIds],
    payments: [...payments],
    customers: [...customers],
    sources: [...sources.values()],
  }
}
