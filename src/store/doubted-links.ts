import { type Kysely, sql, type Transaction } from 'kysely'
import type { PaymentLink } from '../entitlements/source-of.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkStatement } from './bulk.js'
import type { Database } from './schema.js'

/** Before every instant: whatever event names a subscription for the payment, its word counts instead. */
const DOUBTED = Number.MIN_SAFE_INTEGER

const doubt = bulkStatement(
  (namings) => sql<{ payment_id: string }>`
    with taken_back (environment, payment_id, subscription_id, linked_at, linked_by) as (${namings})
    update payment_links set linked_at = ${sql.lit(DOUBTED)} from taken_back
    where payment_links.environment = taken_back.environment
      and payment_links.payment_id = taken_back.payment_id
      and payment_links.subscription_id = taken_back.subscription_id
      and payment_links.linked_at = cast(taken_back.linked_at as bigint)
      and payment_links.linked_by = taken_back.linked_by
    returning payment_links.payment_id`,
)

/**
 * Takes back what events said, where a link rests on it. The link stands until another event names one, or until it
 * is known that none does.
 * @returns whether any link rested on it
 */
export async function doubtLinks(
  trx: Transaction<Database>,
  environment: Environment,
  takenBack: readonly PaymentLink[],
): Promise<boolean> {
  const rows = takenBack.map(({ paymentId, subscriptionId, linkedAt, linkedBy }) => [
    environment,
    paymentId,
    subscriptionId,
    linkedAt,
    linkedBy,
  ])
  return (await doubt(trx, rows)).length > 0
}

/** Links that no event tells any more, where every event has told again. */
export async function loadDoubtedLinks(
  db: Kysely<Database>,
  environment: Environment,
  limit: number,
): Promise<readonly Pick<PaymentLink, 'paymentId' | 'subscriptionId'>[]> {
  const rows = await db
    .selectFrom('payment_links')
    .select(['payment_id', 'subscription_id'])
    .where('environment', '=', environment)
    .where('linked_at', '=', DOUBTED)
    .limit(limit)
    .execute()
  return rows.map((row) => ({ paymentId: row.payment_id, subscriptionId: row.subscription_id }))
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
