import type { Kysely } from 'kysely'
import { isNewerLink, linkOf, type PaymentLink } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { addFacts } from '../store/customer-facts.js'
import { referencesIn } from '../store/customer-references.js'
import { type GroupRow, loadGroupRowsBeyond } from '../store/group-rows.js'
import type { Database } from '../store/schema.js'
import { referenceKey, type ToldPerson } from '../store/tellings.js'

const ROWS_AT_ONCE = 1_000

/** What events have told so far of some customers and payments of one environment. */
export interface Told {
  readonly environment: Environment
  /** By customer id. */
  readonly people: Map<string, ToldPerson>
  /** By payment, the newest naming of its subscription; null: none so far. */
  readonly links: Map<string, PaymentLink | null>
  /** The number of the last event that was asked. */
  reached: number
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
 * @param mayTellOther whether an event may be read otherwise than its columns say
 * @param readingsOf what each says that can be used
 * @returns whether there may be more
 */
export async function askNext(
  db: Kysely<Database>,
  told: Told,
  mayTellOther: (row: GroupRow) => boolean,
  readingsOf: (rows: readonly GroupRow[]) => Promise<readonly NormalizedEvent[]>,
): Promise<boolean> {
  const rows = await loadGroupRowsBeyond(db, told.reached, Number.MAX_SAFE_INTEGER, ROWS_AT_ONCE)
  const asked = rows.filter((row) => {
    if (row.environment !== told.environment) return false
    // Which payment an event names, no column says of all events.
    return told.links.size > 0 || told.people.has(row.customer_id ?? '') || mayTellOther(row)
  })
  for (const event of await readingsOf(asked)) hear(told, event)
  told.reached = rows.at(-1)?.seq ?? told.reached
  return rows.length === ROWS_AT_ONCE
}

function hear(told: Told, event: NormalizedEvent): void {
  const link = linkOf(event)
  if (link !== null && told.links.has(link.paymentId)) {
    if (isNewerLink(link, told.links.get(link.paymentId) ?? undefined)) told.links.set(link.paymentId, link)
  }
  const { customerId, createdAt } = event
  const person = told.people.get(customerId ?? '')
  if (customerId === null || person === undefined) return
  const { facts, deletedAt } = person.record ?? { facts: {}, deletedAt: null }
  const record = {
    customerId,
    facts: addFacts(facts, event),
    deletedAt: event.type === 'customer.deleted' ? Math.max(createdAt, deletedAt ?? createdAt) : deletedAt,
  }
  told.people.set(customerId, { ...person, record })
  for (const reference of referencesIn(event)) person.references.set(referenceKey(reference), reference)
}

/** What an event says of a person, as text: the same events always give the same. */
export function textOfTelling(event: NormalizedEvent | null): string | null {
  if (event === null || event.customerId === null) return null
  const { id, type, createdAt, customerId, customer, externalRef, metadata } = event
  const isDeletion = type === 'customer.deleted'
  return JSON.stringify([id, createdAt, customerId, customer, externalRef, metadata, isDeletion])
}
