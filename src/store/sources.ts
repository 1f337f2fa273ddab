import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { FoldedSource, SourceMemory } from '../entitlements/fold-source.js'
import type { SourceKey, SourceState } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { chunkRows, valuesOf } from './chunk.js'
import { sourceKey } from './keys.js'
import { markTouched } from './rebuild-progress.js'
import type { Database } from './schema.js'

const VALUES_PER_ROW = 7

/** By `sourceKey`; a source that was never saved is not in the map. */
export async function loadSources(
  db: Kysely<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<ReadonlyMap<string, FoldedSource>> {
  const found = new Map<string, FoldedSource>()
  for (const chunk of chunkRows(keys, 2)) {
    const rows = await db
      .selectFrom('sources')
      .select(['state', 'memory'])
      .where('environment', '=', environment)
      .where(isOneOf(chunk))
      .execute()
    for (const row of rows) {
      const state = parseState(row.state)
      const memory = row.memory === null ? null : (JSON.parse(row.memory) as SourceMemory)
      found.set(sourceKey(state), { state, memory })
    }
  }
  return found
}

/** All that these customers' access follows from, by customer id, in the order of kind and id. */
export async function loadSourcesOfCustomers(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly SourceState[]>> {
  const found = new Map<string, SourceState[]>(customerIds.map((id) => [id, []]))
  for (const chunk of chunkRows([...found.keys()], 1)) {
    const rows = await db
      .selectFrom('sources')
      .select(['customer_id', 'state'])
      .where('environment', '=', environment)
      .where('customer_id', 'in', chunk)
      // The customer first, as in the index: without it SQLite reads every source there is, in their key's order.
      .orderBy('customer_id')
      .orderBy('kind')
      .orderBy('source_id')
      .execute()
    for (const row of rows) {
      if (row.customer_id !== null) found.get(row.customer_id)?.push(parseState(row.state))
    }
  }
  return found
}

/** Each source at most once. */
export async function saveSources(
  trx: Transaction<Database>,
  environment: Environment,
  sources: readonly FoldedSource[],
): Promise<void> {
  await markTouched(
    trx,
    environment,
    sources.map(({ state }) => state),
  )
  for (const chunk of chunkRows(sources, VALUES_PER_ROW)) {
    await trx
      .insertInto('sources')
      .values(
        chunk.map(({ state, memory }) => ({
          environment,
          kind: state.kind,
          source_id: state.id,
          customer_id: state.customerId,
          state: JSON.stringify(state),
          memory: memory && JSON.stringify(memory),
          newest_at: state.newestAt,
        })),
      )
      .onConflict((conflict) =>
        conflict.columns(['environment', 'kind', 'source_id']).doUpdateSet((eb) => ({
          customer_id: eb.ref('excluded.customer_id'),
          state: eb.ref('excluded.state'),
          memory: eb.ref('excluded.memory'),
          newest_at: eb.ref('excluded.newest_at'),
        })),
      )
      .execute()
  }
}

/** For a payment whose events have all moved to a subscription. */
export async function deleteSources(
  trx: Transaction<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<void> {
  await markTouched(trx, environment, keys)
  for (const chunk of chunkRows(keys, 2)) {
    await trx.deleteFrom('sources').where('environment', '=', environment).where(isOneOf(chunk)).execute()
  }
}

function isOneOf(keys: readonly SourceKey[]): RawBuilder<boolean> {
  return sql<boolean>`(kind, source_id) in (${valuesOf(keys.map(({ kind, id }) => [kind, id]))})`
}

function parseState(state: string): SourceState {
  return JSON.parse(state) as SourceState
}
