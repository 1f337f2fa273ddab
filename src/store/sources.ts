import { type Kysely, sql, type Transaction } from 'kysely'
import type { FoldedSource, SourceMemory } from '../entitlements/fold-source.js'
import type { SourceKey, SourceState } from '../entitlements/model.js'
import { compareText } from '../entitlements/order.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { BatchMemory } from './batch-memory.js'
import { bulkLookup, bulkUpsert, type Row } from './bulk.js'
import { sourceKey, storedSourceKey } from './keys.js'
import { markTouched } from './rebuild-progress.js'
import type { Database, SourcesTable } from './schema.js'

const UNREADABLE = 'The state of a source can’t be read: `latchkey rebuild` folds it anew from its events.'

const selectSources = bulkLookup(
  ['environment', 'kind', 'source_id'],
  (isTold) => sql<Pick<SourcesTable, 'state' | 'memory'>>`
    select state, memory from sources where ${isTold}`,
)

/** By `sourceKey`; a source that was never saved is not in the map. */
export async function loadSources(
  db: Kysely<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
  lately?: BatchMemory,
): Promise<ReadonlyMap<string, FoldedSource>> {
  const found = new Map<string, FoldedSource>()
  const unknown: Row[] = []
  for (const key of keys) {
    const source = lately?.sources.get(storedSourceKey(environment, key))
    if (source === undefined) unknown.push([environment, key.kind, key.id])
    else found.set(sourceKey(key), source)
  }
  for (const row of await selectSources(db, unknown)) {
    const state = parseState(row.state)
    found.set(sourceKey(state), { state, memory: parseMemory(row.memory) })
  }
  return found
}

/** In no order: told to sort as well, SQLite would read every source there is, in their key's order. */
const selectSourcesOfCustomers = bulkLookup(
  ['environment', 'customer_id'],
  (isTold) => sql<Pick<SourcesTable, 'customer_id' | 'state'>>`
    select customer_id, state from sources where ${isTold}`,
)

/** All that these customers' access follows from, by customer id, in the order of kind and id. */
export async function loadSourcesOfCustomers(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly SourceState[]>> {
  const found = new Map<string, SourceState[]>(customerIds.map((id) => [id, []]))
  const rows = await selectSourcesOfCustomers(
    db,
    [...found.keys()].map((id) => [environment, id]),
  )
  for (const row of rows) {
    if (row.customer_id !== null) found.get(row.customer_id)?.push(parseState(row.state))
  }
  for (const states of found.values()) {
    states.sort((a, b) => compareText(a.kind, b.kind) || compareText(a.id, b.id))
  }
  return found
}

const KEY = ['environment', 'kind', 'source_id'] as const

const COLUMNS = ['customer_id', 'state', 'memory', 'newest_at'] as const

/** Setting the customer anew, even to the same, would write the index by customer as well: a page for each. */
const upsertOfSameCustomer = bulkUpsert('sources', KEY, COLUMNS, {
  updating: ['state', 'memory', 'newest_at'],
})
const upsert = bulkUpsert('sources', KEY, COLUMNS)

/**
 * Each source at most once.
 * @param standing what is known of these sources as they stand, by `sourceKey`
 */
export async function saveSources(
  trx: Transaction<Database>,
  environment: Environment,
  sources: readonly FoldedSource[],
  standing: ReadonlyMap<string, FoldedSource> = new Map(),
  lately?: BatchMemory,
): Promise<void> {
  await markTouched(
    trx,
    environment,
    sources.map(({ state }) => state),
  )
  const row = ({ state, memory }: FoldedSource) => ({
    environment,
    kind: state.kind,
    source_id: state.id,
    customer_id: state.customerId,
    state: JSON.stringify(state),
    memory: memory && JSON.stringify(memory),
    newest_at: state.newestAt,
  })
  const isOfSameCustomer = ({ state }: FoldedSource): boolean =>
    standing.get(sourceKey(state))?.state.customerId === state.customerId
  await upsertOfSameCustomer(trx, sources.filter(isOfSameCustomer).map(row))
  await upsert(trx, sources.filter((source) => !isOfSameCustomer(source)).map(row))
  for (const source of sources) lately?.sources.set(storedSourceKey(environment, source.state), source)
}

const remove = bulkLookup(
  ['environment', 'kind', 'source_id'],
  (isTold) => sql`delete from sources where ${isTold}`,
)

/** For a payment whose events have all moved to a subscription. */
export async function deleteSources(
  trx: Transaction<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
  lately?: BatchMemory,
): Promise<void> {
  for (const key of keys) lately?.sources.delete(storedSourceKey(environment, key))
  await markTouched(trx, environment, keys)
  await remove(
    trx,
    keys.map(({ kind, id }) => [environment, kind, id]),
  )
}

/**
 * As this program writes them, only damage makes one unreadable.
 * @throws {LatchkeyError} `store_unavailable`
 */
export function parseState(text: string): SourceState {
  const state = parsed<SourceState>(text)
  if (Array.isArray(state?.intervals)) return state as SourceState
  throw new LatchkeyError('store_unavailable', UNREADABLE)
}

/** @throws {LatchkeyError} `store_unavailable` */
function parseMemory(text: string | null): SourceMemory | null {
  if (text === null) return null
  const memory = parsed<SourceMemory>(text)
  if (memory !== null) return memory as SourceMemory
  throw new LatchkeyError('store_unavailable', UNREADABLE)
}

function parsed<Value>(text: string): Partial<Value> | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
