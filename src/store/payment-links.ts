import { type Kysely, sql, type Transaction } from 'kysely'
import { isNewerLink, type PaymentLink } from '../entitlements/source-of.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkUpsert } from './bulk.js'
import type { Database, PaymentLinksTable } from './schema.js'

/** A payment whose events now belong to another source: a subscription (`to`) that is not the one before, if any. */
export interface LinkChange {
  readonly paymentId: string
  readonly from: string | null
  readonly to: string
  /** The id of the event that says so. */
  readonly linkedBy: string
}

const selectLinks = bulkLookup(
  ['environment', 'payment_id'],
  (isTold) => sql<PaymentLinksTable>`
    select * from payment_links where ${isTold}`,
)

/** By payment id; a payment that no event links is not in the map. */
export async function loadLinks(
  db: Kysely<Database>,
  environment: Environment,
  paymentIds: readonly string[],
): Promise<ReadonlyMap<string, PaymentLink>> {
  const rows = await selectLinks(
    db,
    paymentIds.map((id) => [environment, id]),
  )
  return new Map(
    rows.map((row) => [
      row.payment_id,
      {
        paymentId: row.payment_id,
        subscriptionId: row.subscription_id,
        linkedAt: row.linked_at,
        linkedBy: row.linked_by,
      },
    ]),
  )
}

/** What is known of some payments' links, and what of it is new. */
export interface LearnedLinks {
  /** By payment id. */
  readonly links: ReadonlyMap<string, PaymentLink>
  readonly changes: readonly LinkChange[]
}

/**
 * Learns links of these payments, and answers which belong elsewhere from now on. Where namings disagree the
 * newest counts, by time, then by the naming event's id: so the order of learning does not matter.
 */
export async function learnLinks(
  trx: Transaction<Database>,
  environment: Environment,
  paymentIds: readonly string[],
  namings: readonly PaymentLink[],
): Promise<LearnedLinks> {
  const stored = await loadLinks(trx, environment, paymentIds)
  const newest = new Map<string, PaymentLink>()
  for (const naming of namings) {
    const known = newest.get(naming.paymentId) ?? stored.get(naming.paymentId)
    if (isNewerLink(naming, known)) newest.set(naming.paymentId, naming)
  }
  await saveLinks(trx, environment, [...newest.values()])
  const changes = [...newest.values()]
    .map(({ paymentId, subscriptionId, linkedBy }) => ({
      paymentId,
      linkedBy,
      from: stored.get(paymentId)?.subscriptionId ?? null,
      to: subscriptionId,
    }))
    .filter(({ from, to }) => from !== to)
  return { links: new Map([...stored, ...newest]), changes }
}

const upsert = bulkUpsert(
  'payment_links',
  ['environment', 'payment_id'],
  ['subscription_id', 'linked_at', 'linked_by'],
)

/** Each payment at most once. */
export function saveLinks(
  trx: Transaction<Database>,
  environment: Environment,
  links: readonly PaymentLink[],
): Promise<void> {
  return upsert(
    trx,
    links.map((link) => ({
      environment,
      payment_id: link.paymentId,
      subscription_id: link.subscriptionId,
      linked_at: link.linkedAt,
      linked_by: link.linkedBy,
    })),
  )
}

const remove = bulkLookup(
  ['environment', 'payment_id'],
  (isTold) => sql`delete from payment_links where ${isTold}`,
)

export async function deleteLinks(
  trx: Transaction<Database>,
  environment: Environment,
  paymentIds: readonly string[],
): Promise<void> {
  await remove(
    trx,
    paymentIds.map((id) => [environment, id]),
  )
}
