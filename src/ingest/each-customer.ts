import { setImmediate as turn } from 'node:timers/promises'
import type { Kysely, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import type { Database } from '../store/schema.js'
import { loadCustomerIds } from '../store/stored-sources.js'

const CUSTOMERS_PER_BATCH = 200

/**
 * Goes through all customers of an environment, some at a time, each time in one transaction: no reader stays so
 * long that it keeps the log of writes from being emptied, and no writer so long that deliveries wait.
 * @param between awaited between two batches; by default, whatever else waits in this process has its turn
 */
export async function* eachCustomers<T>(
  db: Kysely<Database>,
  environment: Environment,
  visit: (trx: Transaction<Database>, customerIds: readonly string[]) => Promise<readonly T[]>,
  between: () => Promise<void> = turn,
): AsyncGenerator<T> {
  let after: string | undefined = ''
  while (after !== undefined) {
    const from: string = after
    const batch = await db.transaction().execute(async (trx) => {
      const customerIds = await loadCustomerIds(trx, environment, from, CUSTOMERS_PER_BATCH)
      return { last: customerIds.at(-1), found: await visit(trx, customerIds) }
    })
    yield* batch.found
    after = batch.last
    await between()
  }
}
