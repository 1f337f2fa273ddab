import type { Kysely } from 'kysely'
import { isNewerLink, linkOf, type PaymentLink } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { addFacts, type CustomerRecord } from '../store/customer-facts.js'
import { type Reference, referencesIn } from '../store/customer-references.js'
import { type GroupRow, loadGroupRows } from '../store/group-rows.js'
import type { Database } from '../store/schema.js'
import { type EventGlimpse, glimpseEvents, type ToldPerson } from '../store/tellings.js'

/** What events have told so far of some customers and payments of one environment. */
export interface Told {
  readonly environment: Environment
  /** By customer id. */
  readonly people: Map<string, Person>
  /** By payment, the newest naming of its subscription; null: none so far. */
  readonly links: Map<string, PaymentLink | null>
  /** The number of the last event that was asked. */
  reached: number
}

interface Person {
  record: CustomerRecord | null
  readonly references: Map<string, Reference>
}

export function nothingTold(
  environment: Environment,
  customerIds: readonly string[],
  paymentIds: readonly string[],
): Told {
  return {
    environment,
    people: new Map(customerIds.map((id) => [id, { record: null, references: new Map() }])),
    links: new Map(paymentIds.map((id) => [id, null])),
    reached: 0,
  }
}

/**
 * Asks the next events what they tell.
 * @param readingsOf what each says that can be used
 * @returns whether there may be more
 */
export async function askNext(
  db: Kysely<Database>,
  told: Told,
  limit: number,
  isMeant: (glimpse: EventGlimpse) => boolean,
  readingsOf: (rows: readonly GroupRow[]) => Promise<readonly NormalizedEvent[]>,
): Promise<boolean> {
  const glimpses = await glimpseEvents(db, told.reached, limit)
  const asked = glimpses.filter(
    (one) => one.environment === told.environment && (mayTell(one, told) || isMeant(one)),
  )
  const rows = await loadGroupRows(
    db,
    asked.map(({ seq }) => seq),
  )
  for (const event of await readingsOf(rows)) hear(told, event)
  told.reached = glimpses.at(-1)?.seq ?? told.reached
  return glimpses.length === limit
}

function mayTell(
  { type, customer_id: customerId, payment_id: paymentId }: EventGlimpse,
  told: Told,
): boolean {
  if (customerId !== null && told.people.has(customerId)) return true
  if (told.links.size === 0) return false
  // Which payment an event of a subscription names, no column tells.
  return paymentId === null ? type?.startsWith('subscription.') === true : told.links.has(paymentId)
}

function hear(told: Told, event: NormalizedEvent): void {
  const link = linkOf(event)
  if (link !== null && told.links.has(link.paymentId)) {
    if (isNewerLink(link, told.links.get(link.paymentId) ?? undefined)) told.links.set(link.paymentId, link)
  }
  const { customerId, createdAt } = event
  const person = customerId === null ? undefined : told.people.get(customerId)
  if (customerId === null || person === undefined) return
  const { facts, deletedAt } = person.record ?? { facts: {}, deletedAt: null }
  person.record = {
    customerId,
    facts: addFacts(facts, event),
    deletedAt: event.type === 'customer.deleted' ? Math.max(createdAt, deletedAt ?? createdAt) : deletedAt,
  }
  for (const reference of referencesIn(event)) {
    person.references.set(JSON.stringify([reference.name, reference.value]), reference)
  }
}

export function toldOf({ record, references }: Person): ToldPerson {
  return { record, references: [...references.values()] }
}

/** What an event tells of a person, as text: the same events always give the same. */
export function textOfTelling(event: NormalizedEvent | null): string | null {
  if (event === null || event.customerId === null) return null
  const { id, type, createdAt, customerId, customer, externalRef, metadata } = event
  const isDeletion = type === 'customer.deleted'
  return JSON.stringify([id, createdAt, customerId, customer, externalRef, metadata, isDeletion])
}
