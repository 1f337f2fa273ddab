import type { Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { forgetJoinLinks } from './join-links.js'
import type { Database } from './schema.js'

/** Leaves nothing of a customer but the id, and that the provider deleted them, if it did. */
export async function forgetPerson(
  trx: Transaction<Database>,
  environment: Environment,
  customerId: string,
): Promise<void> {
  await trx
    .updateTable('customers')
    .set({ facts: '{}', email: null, community_id: null, messenger_id: null })
    .where('environment', '=', environment)
    .where('customer_id', '=', customerId)
    .execute()
  await trx
    .deleteFrom('customer_references')
    .where('environment', '=', environment)
    // As a stretch in order: asked for one customer plainly, SQLite reads every reference there is, from the key.
    .where('customer_id', '>=', customerId)
    .where('customer_id', '<=', customerId)
    .execute()
  // By these a customer tells who they are, and they tell by which account that was done.
  await forgetJoinLinks(trx, environment, customerId)
}
