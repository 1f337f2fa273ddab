import type { Environment } from '../provider/event.js'
import { createErasedPeople, type ErasedPeople } from '../provider/known-people.js'
import type { ErasedIds } from '../store/erased-ids.js'
import type { PreparedDelivery } from './prepare.js'

/** Everybody of one environment who is erased, as what arrives is held against them; null: nobody is. */
export function erasedPeople(erased: ErasedIds, environment: Environment): ErasedPeople | null {
  const own = erased.get(environment)
  return own === undefined ? null : createErasedPeople({ ...own, words: [] })
}

/** Those who are erased, and those whom these deliveries erase: the very same where they erase nobody. */
export function withErasuresOf(erased: ErasedIds, prepared: readonly PreparedDelivery[]): ErasedIds {
  const erasing = prepared.filter(isErasure)
  if (erasing.length === 0) return erased
  const all = new Map(erased)
  for (const { environment, normalized } of erasing) {
    const customerId = normalized.ok ? normalized.event.customerId : null
    if (customerId === null) continue
    const own = all.get(environment) ?? { ids: new Set<string>(), fingerprints: [] }
    all.set(environment, { ...own, ids: new Set([...own.ids, customerId]) })
  }
  return all
}

/** A provider's event may bear any type; what was done by hand is known by its subject. */
export function isErasure({ normalized }: PreparedDelivery): boolean {
  return normalized.ok && normalized.event.subject === 'manual' && normalized.event.type === 'manual.erased'
}
