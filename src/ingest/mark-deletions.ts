import type { Transaction } from 'kysely'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { markDeleted } from '../store/customers.js'
import type { Database } from '../store/schema.js'

/** Marks the customers whom these events tell deleted. */
export function markDeletions(
  trx: Transaction<Database>,
  environment: Environment,
  events: readonly NormalizedEvent[],
): Promise<void> {
  const deletions = events.filter(({ type }) => type === 'customer.deleted')
  return markDeleted(
    trx,
    environment,
    deletions.flatMap(({ customerId, createdAt: at }) => (customerId === null ? [] : [{ customerId, at }])),
  )
}
