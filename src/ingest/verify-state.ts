import type { Kysely } from 'kysely'
import { entitlementsOf } from '../entitlements/entitlement.js'
import type { Policy } from '../entitlements/policy.js'
import type { Environment } from '../provider/event.js'
import { loadBlocks } from '../store/blocks.js'
import { loadEntitlements } from '../store/entitlements.js'
import { byEnvironment } from '../store/next-state.js'
import type { StoredSourceKey } from '../store/rebuild-progress.js'
import type { Database } from '../store/schema.js'
import { loadSourcesOfCustomers } from '../store/sources.js'
import { loadSourceKeys } from '../store/stored-sources.js'
import { eachCustomers } from './each-customer.js'
import { foldAnew } from './fold-anew.js'
import { isChange, NEVER_GRANTED } from './save-access.js'

/** Something that does not stand as folding everything from nothing would have it. */
export interface StateDifference {
  readonly environment: Environment
  readonly kind: 'source' | 'disposition' | 'entitlement'
  /** `subscription sub_1`, an event's id, or `cus_1 pro_1`. */
  readonly id: string
}

const SOURCES_PER_BATCH = 100

/** Compares what stands with what all stored events come to under the policy in force. Changes nothing. */
export async function* stateDifferences(
  db: Kysely<Database>,
  policy: Policy,
  now: number,
): AsyncGenerator<StateDifference> {
  let after: StoredSourceKey | null | undefined = null
  while (after !== undefined) {
    const from: StoredSourceKey | null = after
    const batch = await db.transaction().execute(async (trx) => {
      const keys = await loadSourceKeys(trx, from, SOURCES_PER_BATCH)
      const found: StateDifference[] = []
      for (const [environment, own] of byEnvironment(keys)) {
        const { sources, dispositions } = await foldAnew(trx, environment, own, policy)
        for (const { key } of sources)
          found.push({ environment, kind: 'source', id: `${key.kind} ${key.id}` })
        for (const { eventId } of dispositions) found.push({ environment, kind: 'disposition', id: eventId })
      }
      return { last: keys.at(-1), found }
    })
    yield* batch.found
    after = batch.last
  }
  yield* entitlementDifferences(db, 'live', now)
  yield* entitlementDifferences(db, 'sandbox', now)
}

/** What is written down of each customer, against the customer's sources. */
function entitlementDifferences(
  db: Kysely<Database>,
  environment: Environment,
  now: number,
): AsyncGenerator<StateDifference> {
  return eachCustomers(db, environment, async (trx, customerIds) => {
    const sources = await loadSourcesOfCustomers(trx, environment, customerIds)
    const blocks = await loadBlocks(trx, environment, customerIds)
    const stored = await loadEntitlements(trx, environment, customerIds)
    return customerIds.flatMap((customerId) => {
      const written = new Map((stored.get(customerId) ?? []).map((record) => [record.productId, record]))
      const is = new Map(
        entitlementsOf(sources.get(customerId) ?? [], blocks.get(customerId) ?? [], { now }).map(
          (entitlement) => [entitlement.productId, entitlement],
        ),
      )
      return [...new Set([...written.keys(), ...is.keys()])].flatMap((productId) => {
        const record = written.get(productId)
        // The clock has changed it since; that is written down within the minute.
        if (record?.nextChangeAt != null && record.nextChangeAt <= now) return []
        const differs = isChange(record ?? NEVER_GRANTED, is.get(productId) ?? NEVER_GRANTED)
        return differs
          ? [{ environment, kind: 'entitlement' as const, id: `${customerId} ${productId}` }]
          : []
      })
    })
  })
}
