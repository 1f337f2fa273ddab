import type { Kysely } from 'kysely'
import { afterErasures } from '../entitlements/by-hand.js'
import { instantFor, viewSource } from '../entitlements/entitlement.js'
import type { KnownCustomer, KnownFact, KnownSource, SourceState } from '../entitlements/model.js'
import { compareText } from '../entitlements/order.js'
import type { Environment } from '../provider/event.js'
import type { CustomerFacts } from './customer-facts.js'
import { loadReferences } from './customer-references.js'
import { loadCustomer } from './customers.js'
import { loadActsOn, NO_ACTS } from './manual-events.js'
import type { Database } from './schema.js'
import { loadSourcesOfCustomers } from './sources.js'

export interface CustomerQuery {
  readonly environment: Environment
  readonly customerId: string
}

/** Null for one of whom nothing is known. */
export type ReadKnownCustomer = (query: CustomerQuery) => Promise<KnownCustomer | null>

const METADATA = 'metadata.'

/** Gathers everything that is known of one person. */
export function createKnownCustomerReader(db: Kysely<Database>, clock: () => number): ReadKnownCustomer {
  return async ({ environment, customerId }) => {
    const record = await loadCustomer(db, environment, customerId)
    const sources = (await loadSourcesOfCustomers(db, environment, [customerId])).get(customerId) ?? []
    const acts = (await loadActsOn(db, environment, [customerId])).get(customerId) ?? NO_ACTS
    const { blocks, erasures } = acts
    const hasActs = blocks.length > 0 || erasures.length > 0
    if (record === undefined && sources.length === 0 && !hasActs) return null
    const now = clock()
    const facts = record?.facts ?? {}
    return {
      customerId,
      environment,
      facts,
      metadata: metadataOf(facts),
      references: await loadReferences(db, environment, customerId),
      blocks,
      deletedAt: record?.deletedAt ?? null,
      erasedAt: erasures[0]?.at ?? null,
      sources: sources.flatMap((source) => viewsOf(afterErasures(source, erasures), now)),
    }
  }
}

function metadataOf(facts: CustomerFacts): Record<string, KnownFact> {
  const told = Object.entries(facts)
    .filter(([name]) => name.startsWith(METADATA))
    .flatMap(([name, fact]) => (fact === undefined ? [] : [[name.slice(METADATA.length), fact] as const]))
  return Object.fromEntries(told)
}

/** A source once for each product that it ever gave, in order; once where it gave none. */
function viewsOf(source: SourceState, now: number): KnownSource[] {
  const products = [...new Set(source.intervals.map(({ productId }) => productId))].sort(compareText)
  if (products.length === 0) return [{ source, productId: null, view: null }]
  const at = instantFor(source, { now })
  return products.map((productId) => ({ source, productId, view: viewSource(source, productId, at) }))
}
