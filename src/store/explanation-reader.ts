import type { Kysely } from 'kysely'
import { type Explanation, explain } from '../entitlements/explain.js'
import type { Policy } from '../entitlements/policy.js'
import type { AccessQuery } from './access-reader.js'
import { loadAccount } from './account.js'
import { loadPolicy } from './policy.js'
import type { Database } from './schema.js'

export interface ExplanationQuery extends AccessQuery {
  readonly productId: string
}

export type ReadExplanation = (query: ExplanationQuery) => Promise<Explanation>

/**
 * Explains one customer's access to one product from the stored events, under the policy in force.
 * @param configured the policy of a store in which none is in force yet
 */
export function createExplanationReader(
  db: Kysely<Database>,
  clock: () => number,
  configured: Policy,
): ReadExplanation {
  // One transaction, so that sources, events and policy are of one moment.
  return ({ environment, customerId, productId, at }) =>
    db.transaction().execute(async (trx) => {
      const policy = (await loadPolicy(trx)) ?? configured
      const account = await loadAccount(trx, environment, customerId, productId)
      return explain(account, productId, at === null ? { now: clock() } : { at }, policy)
    })
}
