import type { Environment } from '../provider/event.js'
import type { ErasedPeople } from '../provider/withhold-erased.js'
import type { ErasedIds } from '../store/erasures.js'
import type { PreparedDelivery } from './prepare.js'

/** Everybody of one environment who is erased, as what arrives is held against them; null: nobody is. */
export function erasedPeople(ids: ErasedIds, environment: Environment): ErasedPeople | null {
  const own = ids.get(environment)
  if (own === undefined) return null
  return {
    isErased: (customerId) => own.has(customerId),
    knownBy: () => [...own].map((id) => id.toLowerCase()),
  }
}

/** Those who are erased, and those whom these deliveries erase: the very same ids where they erase nobody. */
export function withErasuresOf(ids: ErasedIds, prepared: readonly PreparedDelivery[]): ErasedIds {
  const erasing = prepared.filter(isErasure)
  if (erasing.length === 0) return ids
  const all = new Map([...ids].map(([environment, own]) => [environment, new Set(own)]))
  for (const { environment, normalized } of erasing) {
    const customerId = normalized.ok ? normalized.event.customerId : null
    if (customerId !== null) all.set(environment, (all.get(environment) ?? new Set()).add(customerId))
  }
  return all
}

/** A provider's event may bear any type; what was done by hand is known by its subject. */
export function isErasure({ normalized }: PreparedDelivery): boolean {
  return normalized.ok && normalized.event.subject === 'manual' && normalized.event.type === 'manual.erased'
}
