import type { Kysely } from 'kysely'
import { type Block, foldBlocks } from '../entitlements/blocks.js'
import { type Erasure, foldErasures } from '../entitlements/erasures.js'
import type { Environment } from '../provider/event.js'
import { loadManualEvents } from './manual-events.js'
import type { Database } from './schema.js'

/** What was done by hand to a customer, beside what was granted. */
export interface ActsOnCustomer {
  readonly blocks: readonly Block[]
  readonly erasures: readonly Erasure[]
}

export const NO_ACTS: ActsOnCustomer = { blocks: [], erasures: [] }

/**
 * Every block and erasure of these customers, by customer id. Few customers have any, and those few events:
 * they are folded at each question, so that nothing stored can disagree with the events.
 */
export async function loadActsOn(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, ActsOnCustomer>> {
  const events = await loadManualEvents(db, environment, customerIds)
  return new Map(
    [...events].map(([customerId, own]) => [
      customerId,
      { blocks: foldBlocks(own), erasures: foldErasures(own) },
    ]),
  )
}
