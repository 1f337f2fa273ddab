import type { Kysely, Transaction } from 'kysely'
import { entitlementsOf } from '../entitlements/entitlement.js'
import { afterErasures } from '../entitlements/erasures.js'
import type { Entitlement, SourceState } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import type { Environment } from '../provider/event.js'
import { loadActsOn, NO_ACTS } from '../store/acts-on-customers.js'
import { sourceKey } from '../store/keys.js'
import type { Database } from '../store/schema.js'
import { loadSourcesOfCustomers } from '../store/sources.js'
import { loadEventsOfSources } from '../store/stored-sources.js'
import type { AccessDifference } from './access-difference.js'
import { eachCustomers } from './each-customer.js'
import { foldStored } from './fold-anew.js'
import { isChange, NEVER_GRANTED, snapshot } from './save-access.js'

/**
 * Whose access would change, as of `now`, were another policy in force. Reads only: whatever is taken in
 * meanwhile may or may not count.
 */
export function policyDifferences(
  db: Kysely<Database>,
  environment: Environment,
  policy: Policy,
  now: number,
): AsyncGenerator<AccessDifference> {
  return eachCustomers(db, environment, async (trx, customerIds) => {
    const standing = await loadSourcesOfCustomers(trx, environment, customerIds)
    const anew = await foldUnder(trx, environment, [...standing.values()].flat(), policy)
    const acts = await loadActsOn(trx, environment, customerIds)
    return customerIds.flatMap((customerId) => {
      const sources = standing.get(customerId) ?? []
      const next = sources.flatMap((source) => anew.get(sourceKey(source)) ?? [])
      const { blocks, erasures } = acts.get(customerId) ?? NO_ACTS
      const access = (own: readonly SourceState[]) =>
        entitlementsOf(
          own.map((source) => afterErasures(source, erasures)),
          blocks,
          { now },
        )
      const [before, after] = [access(sources), access(next)]
      return changesBetween(before, after).map((change) => ({ environment, customerId, ...change }))
    })
  })
}

/** Whom a source belongs to does not depend on the policy: so each customer's sources are the same. */
async function foldUnder(
  trx: Transaction<Database>,
  environment: Environment,
  sources: readonly SourceState[],
  policy: Policy,
): Promise<ReadonlyMap<string, SourceState>> {
  const events = await loadEventsOfSources(trx, environment, sources)
  return new Map(
    sources.flatMap(({ kind, id }) => {
      const key = { kind, id }
      const folded = foldStored(key, events.get(sourceKey(key)) ?? [], policy)
      return folded === null ? [] : [[sourceKey(key), folded.state] as const]
    }),
  )
}

function changesBetween(
  before: readonly Entitlement[],
  after: readonly Entitlement[],
): Pick<AccessDifference, 'productId' | 'before' | 'after'>[] {
  const was = new Map(before.map((entitlement) => [entitlement.productId, entitlement]))
  const is = new Map(after.map((entitlement) => [entitlement.productId, entitlement]))
  return [...new Set([...was.keys(), ...is.keys()])].flatMap((productId) => {
    const [one, other] = [was.get(productId) ?? NEVER_GRANTED, is.get(productId) ?? NEVER_GRANTED]
    return isChange(one, other) ? [{ productId, before: snapshot(one), after: snapshot(other) }] : []
  })
}
