import { type Kysely, sql, type Transaction } from 'kysely'
import type { PaymentLink } from '../entitlements/source-of.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkUpsert } from './bulk.js'
import type { Database, PaymentLinksTable } from './schema.js'

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
