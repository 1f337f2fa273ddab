import { sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { loadAccountsOf, loadLinkedCustomers } from './linked-accounts.js'
import type { Database } from './schema.js'
import { markForSync, type SyncMark } from './sync-marks.js'

/**
 * Marks these customers, and everybody else to whom their accounts belong, too: what one of them loses, another may
 * still hold. In the transaction that takes the accounts away or gives them others, before it does.
 */
export async function markAccountHolders(
  trx: Transaction<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<void> {
  const accounts = await loadAccountsOf(trx, environment, customerIds)
  const holders = new Set(customerIds)
  for (const fact of ['communityId', 'messengerId'] as const) {
    const ids = accounts.filter((one) => one.fact === fact).map(({ accountId }) => accountId)
    for (const { customerId } of await loadLinkedCustomers(trx, environment, fact, [...new Set(ids)])) {
      holders.add(customerId)
    }
  }
  await markForSync(
    trx,
    [...holders].map((customerId) => ({ environment, customerId })),
  )
}

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 1_000

/**
 * Marks the next customers who have an account.
 * @returns the last of them, after whom it goes on; null: those were all
 */
export async function markLinkedCustomers(
  trx: Transaction<Database>,
  after: SyncMark | null,
): Promise<SyncMark | null> {
  const rows = await trx
    .selectFrom('customers')
    .select(['environment', 'customer_id', 'community_id', 'messenger_id'])
    .where(
      sql<boolean>`(environment, customer_id) > (${after?.environment ?? ''}, ${after?.customerId ?? ''})`,
    )
    .orderBy('environment')
    .orderBy('customer_id')
    .limit(MAX_PER_TRANSACTION)
    .execute()
  const linked = rows.filter((row) => row.community_id !== null || row.messenger_id !== null)
  await markForSync(
    trx,
    linked.map((row) => ({ environment: row.environment, customerId: row.customer_id })),
  )
  const last = rows.at(-1)
  if (last === undefined || rows.length < MAX_PER_TRANSACTION) return null
  return { environment: last.environment, customerId: last.customer_id }
}
