import type { Kysely } from 'kysely'
import { type Block, foldBlocks } from '../entitlements/blocks.js'
import type { Environment } from '../provider/event.js'
import { loadManualEvents } from './manual-events.js'
import type { Database } from './schema.js'

/**
 * Every block that ever stood on these customers, by customer id. Few customers have any, and those few events:
 * they are folded at each question, so that nothing stored can disagree with the events.
 */
export async function loadBlocks(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly Block[]>> {
  const events = await loadManualEvents(db, environment, customerIds)
  return new Map([...events].map(([customerId, own]) => [customerId, foldBlocks(own)]))
}
