/* What an event says about a person, and the newest of it by the events of many. */

import { ACCOUNT_FACTS, type Accounts } from './accounts.js'
import type { CustomerDetails, NormalizedEvent } from './event.js'
import { compareByTime } from './order.js'

/** The facts about the person in an event; personal data, so never logged. */
export type PersonalFields = Pick<
  NormalizedEvent,
  'id' | 'createdAt' | 'customerId' | 'customer' | 'externalRef' | 'metadata'
>

/** Details by name, the merchant's reference as `externalRef`, each metadata value as `metadata.<key>`. */
export type FactName = keyof CustomerDetails | 'externalRef' | `metadata.${string}`

/** One fact, the event it comes from, and when that happened (epoch milliseconds). */
export interface Fact {
  readonly value: string
  readonly at: number
  readonly by: string
}

export type CustomerFacts = Readonly<Partial<Record<FactName, Fact>>>

/** The facts in one event, by name; missing and blank ones are left out. */
function factsIn(event: PersonalFields): readonly (readonly [FactName, string])[] {
  const details = Object.entries(event.customer) as [keyof CustomerDetails, string | null][]
  const metadata = Object.entries(event.metadata).map(([key, value]) => [`metadata.${key}`, value] as const)
  const facts: (readonly [FactName, string | null])[] = [
    ...details,
    ['externalRef', event.externalRef],
    ...metadata,
  ]
  return facts.flatMap(([name, value]) => (value === null || value === '' ? [] : [[name, value] as const]))
}

/** Whether an event only repeats known facts about its customer, as nearly all do. */
export function isKnown({ customer, externalRef, metadata }: PersonalFields, facts: CustomerFacts): boolean {
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
 * Adds the facts of an event. For each fact the newest event wins, so the order of adding does not matter, and an
 * event without a fact does not remove it. Returns the same object if nothing changes.
 * @param mayRepeat false: a repeated value does not become newer, as for events that `loadOwnEvents` finds again
 */
export function addFacts(facts: CustomerFacts, event: PersonalFields, mayRepeat = true): CustomerFacts {
  const news = factsIn(event).filter(([name, value]) => {
    const known = facts[name]
    if (known === undefined) return true
    if (!mayRepeat && known.value === value) return false
    return compareByTime(event, { createdAt: known.at, id: known.by }) > 0
  })
  if (news.length === 0) return facts
  const fact = (value: string): Fact => ({ value, at: event.createdAt, by: event.id })
  return { ...facts, ...Object.fromEntries(news.map(([name, value]) => [name, fact(value)])) }
}

/** A link from the merchant's own ids to a customer: the reference, or one metadata value. */
export type ReferenceName = 'externalRef' | `metadata.${string}`

/** One of them. */
export interface Reference {
  readonly name: ReferenceName
  readonly value: string
}

/** The provider's own limit for a reference; a longer metadata value is text, not an id. */
export const MAX_REFERENCE_LENGTH = 255

/** The newest accounts of a customer. */
export function accountsIn(facts: CustomerFacts): Accounts {
  const known = ACCOUNT_FACTS.map((name) => [name, facts[name]?.value] as const)
  return Object.fromEntries(known.filter(([, value]) => value !== undefined))
}

/** The references in an event. */
export function referencesIn(event: PersonalFields): readonly Reference[] {
  return factsIn(event).flatMap(([name, value]) =>
    isReferenceName(name) && value.length <= MAX_REFERENCE_LENGTH ? [{ name, value }] : [],
  )
}

function isReferenceName(name: FactName): name is ReferenceName {
  return name === 'externalRef' || name.startsWith('metadata.')
}
