import type { Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { latestCursor, loadChanges } from '../store/changes.js'
import type { Database } from '../store/schema.js'
import type { AccessDifference } from './access-difference.js'
import { saveAccess } from './save-access.js'

/** Writes down what these customers' sources say, where something else is written, and answers what that was. */
export async function rewriteAccess(
  trx: Transaction<Database>,
  environment: Environment,
  customerIds: readonly string[],
  now: number,
): Promise<readonly AccessDifference[]> {
  const start = await latestCursor(trx)
  await saveAccess(trx, environment, customerIds, now, () => ({ kind: 'rebuild', eventId: null }))
  const changes = await loadChanges(trx, environment, start, Number.MAX_SAFE_INTEGER)
  return changes.map(({ customerId, productId, before, after }) => ({
    environment,
    customerId,
    productId,
    before,
    after,
  }))
}
