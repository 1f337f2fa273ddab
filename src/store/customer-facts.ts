import { compareByTime } from '../entitlements/order.js'
import type { CustomerDetails, NormalizedEvent } from '../provider/event.js'

/** What an event tells about the person; personal data, so never logged. */
export type CustomerTelling = Pick<
  NormalizedEvent,
  'id' | 'createdAt' | 'customerId' | 'customer' | 'externalRef' | 'metadata'
>

/** Details by name, the merchant's reference as `externalRef`, each metadata value as `metadata.<key>`. */
export type FactName = keyof CustomerDetails | 'externalRef' | `metadata.${string}`

/** One thing that is known, the event that told it, and when that happened (epoch milliseconds). */
export interface Fact {
  readonly value: string
  readonly at: number
  readonly by: string
}

export type CustomerFacts = Readonly<Partial<Record<FactName, Fact>>>

/** One person in one environment. Personal data: never logged. */
export interface CustomerRecord {
  readonly customerId: string
  readonly facts: CustomerFacts
  /** When the provider says it deleted them, in epoch milliseconds; changes no access. */
  readonly deletedAt: number | null
}

/** What one event tells, by name; what it leaves out or blank it does not tell. */
export function toldFacts(telling: CustomerTelling): readonly (readonly [FactName, string])[] {
  const details = Object.entries(telling.customer) as [keyof CustomerDetails, string | null][]
  const metadata = Object.entries(telling.metadata).map(([key, value]) => [`metadata.${key}`, value] as const)
  const told: (readonly [FactName, string | null])[] = [
    ...details,
    ['externalRef', telling.externalRef],
    ...metadata,
  ]
  return told.flatMap(([name, value]) => (value === null || value === '' ? [] : [[name, value] as const]))
}

/** Whether an event says nothing of its customer but what is known, as nearly all do. */
export function isKnown({ customer, externalRef, metadata }: CustomerTelling, facts: CustomerFacts): boolean {
  const repeats = (name: FactName, value: string | null | undefined): boolean =>
    value === null || value === undefined || value === '' || facts[name]?.value === value
  if (!repeats('externalRef', externalRef)) return false
  for (const name in customer) {
    if (!repeats(name as keyof CustomerDetails, customer[name as keyof CustomerDetails])) return false
  }
  for (const key in metadata) if (!repeats(`metadata.${key}`, metadata[key])) return false
  return true
}

/**
 * Adds what an event tells. The newest event that tells a fact wins for that fact alone, so the order in which
 * events are added does not matter, and an event that is silent about something takes nothing away. Answers the
 * very same facts where it adds nothing.
 * @param mayRepeat false: a value that is known already does not become newer, as where the event is found again by
 * `loadTellings`
 */
export function addFacts(facts: CustomerFacts, telling: CustomerTelling, mayRepeat = true): CustomerFacts {
  const news = toldFacts(telling).filter(([name, value]) => {
    const known = facts[name]
    if (known === undefined) return true
    if (!mayRepeat && known.value === value) return false
    return compareByTime(telling, { createdAt: known.at, id: known.by }) > 0
  })
  if (news.length === 0) return facts
  const fact = (value: string): Fact => ({ value, at: telling.createdAt, by: telling.id })
  return { ...facts, ...Object.fromEntries(news.map(([name, value]) => [name, fact(value)])) }
}
