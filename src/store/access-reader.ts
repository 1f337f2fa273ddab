import type { Kysely } from 'kysely'
import type { AccessAnswer } from '../entitlements/answer.js'
import { entitlementsOf, nextChangeAfter } from '../entitlements/entitlement.js'
import type { Environment } from '../provider/event.js'
import { latestCursor } from './changes.js'
import type { Database } from './schema.js'
import { loadSourcesOfCustomers } from './sources.js'

/** `at`: epoch milliseconds; null asks about now. */
export interface AccessQuery {
  readonly environment: Environment
  readonly customerId: string
  readonly at: number | null
}

export type ReadAccess = (query: AccessQuery) => Promise<AccessAnswer>

/** Answers what one customer may use, from the sources: exact at every instant, whatever was written down last. */
export function createAccessReader(db: Kysely<Database>, clock: () => number): ReadAccess {
  return async ({ environment, customerId, at }) => {
    // Read before the sources: a change that commits in between is then told twice, never missed.
    const cursor = String(await latestCursor(db))
    const sources = await loadSourcesOfCustomers(db, environment, [customerId])
    const now = clock()
    const entitlements = entitlementsOf(sources.get(customerId) ?? [], at === null ? { now } : { at })
    return {
      customerId,
      environment,
      asOf: at ?? now,
      validUntil: at === null ? nextChangeAfter(entitlements, now) : null,
      cursor,
      entitlements,
    }
  }
}
