import { type Kysely, sql, type Transaction } from 'kysely'
import { type HistoryEvent, unpackHistory } from '../entitlements/history.js'
import type { AccessInterval, SourceKey, SourceState } from '../entitlements/model.js'
import { compareText } from '../entitlements/order.js'
import { sourceKey } from '../entitlements/source-of.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkUpsert } from './bulk.js'
import type { Database, SourcesTable } from './schema.js'

/** A source as it is saved: what its events come to, and what the rules read of each of them. */
export interface StoredSource {
  readonly state: SourceState
  /** As `packHistory` writes it. */
  readonly history: string
}

const selectSources = bulkLookup(
  ['environment', 'kind', 'source_id'],
  (isTold) => sql<StateRow & Pick<SourcesTable, 'history'>>`
    select kind, source_id, customer_id, newest_at, state, history from sources where ${isTold}`,
)

/**
 * By `sourceKey`; a source that was never saved is not in the map.
 * @throws {LatchkeyError} `store_unavailable` where a state can't be read
 */
export async function loadSources(
  db: Kysely<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<ReadonlyMap<string, StoredSource>> {
  const rows = await selectSources(
    db,
    keys.map(({ kind, id }) => [environment, kind, id]),
  )
  const sources = rows.map((row) => ({ state: stateOf(row), history: row.history }))
  return new Map(sources.map((source) => [sourceKey(source.state), source]))
}

/** In no order: told to sort as well, SQLite would read every source there is, in their key's order. */
const selectSourcesOfCustomers = bulkLookup(
  ['environment', 'customer_id'],
  (isTold) => sql<StateRow>`
    select kind, source_id, customer_id, newest_at, state from sources where ${isTold}`,
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
    if (row.customer_id !== null) found.get(row.customer_id)?.push(stateOf(row))
  }
  for (const states of found.values()) {
    states.sort((a, b) => compareText(a.kind, b.kind) || compareText(a.id, b.id))
  }
  return found
}

const KEY = ['environment', 'kind', 'source_id'] as const

const COLUMNS = ['customer_id', 'state', 'history', 'newest_at'] as const

/** Setting the customer anew, even to the same, would write the index by customer as well: a page for each. */
const upsertOfSameCustomer = bulkUpsert('sources', KEY, COLUMNS, {
  updating: ['state', 'history', 'newest_at'],
})
const upsert = bulkUpsert('sources', KEY, COLUMNS)

/**
 * Each source at most once.
 * @param standing what is known of these sources as they stand, by `sourceKey`
 */
export async function saveSources(
  trx: Transaction<Database>,
  environment: Environment,
  sources: readonly StoredSource[],
  standing: ReadonlyMap<string, StoredSource> = new Map(),
): Promise<void> {
  const row = (source: StoredSource) => ({
    environment,
    kind: source.state.kind,
    source_id: source.state.id,
    ...sourceColumns(source),
  })
  const isOfSameCustomer = ({ state }: StoredSource): boolean =>
    standing.get(sourceKey(state))?.state.customerId === state.customerId
  await upsertOfSameCustomer(trx, sources.filter(isOfSameCustomer).map(row))
  await upsert(trx, sources.filter((source) => !isOfSameCustomer(source)).map(row))
}

/** What is stored of a source, beside its key. */
export function sourceColumns({ state, history }: StoredSource) {
  return {
    customer_id: state.customerId,
    state: packState(state),
    history,
    newest_at: state.newestAt,
  }
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
): Promise<void> {
  await remove(
    trx,
    keys.map(({ kind, id }) => [environment, kind, id]),
  )
}

/** The columns that hold a state. */
export type StateRow = Pick<SourcesTable, 'kind' | 'source_id' | 'customer_id' | 'newest_at' | 'state'>

type PackedInterval = readonly [string, number, number | null, AccessInterval['reason'], string]

/** What no other column holds of a state, without what is as in `NOTHING_SAID`: a short row seldom splits its page. */
interface PackedState extends Partial<Omit<SourceState, 'intervals'>> {
  readonly intervals: readonly PackedInterval[]
}

const NOTHING_SAID = {
  rail: 'unknown',
  pastDueSince: null,
  cancelAtPeriodEnd: false,
  periodEnd: null,
  providerStatus: null,
  cyclesWithoutPayment: 0,
} as const satisfies Partial<SourceState>

const NAMES = Object.keys(NOTHING_SAID) as (keyof typeof NOTHING_SAID)[]

function packState(state: SourceState): string {
  const packed: Record<string, unknown> = {
    intervals: state.intervals.map(({ productId, from, until, reason, eventId }): PackedInterval => [
      productId,
      from,
      until,
      reason,
      eventId,
    ]),
  }
  for (const name of NAMES) if (state[name] !== NOTHING_SAID[name]) packed[name] = state[name]
  for (const _ in state.held) {
    packed.held = state.held
    break
  }
  if (state.grantsByHand !== undefined) packed.grantsByHand = state.grantsByHand
  return JSON.stringify(packed)
}

/**
 * As this program writes them, only damage makes one unreadable.
 * @throws {LatchkeyError} `store_unavailable`
 */
export function stateOf(row: StateRow): SourceState {
  const packed = parsed(row.state)
  if (!Array.isArray(packed?.intervals)) throw unreadable('state')
  const { intervals, held = {}, ...said } = packed as PackedState
  return {
    kind: row.kind,
    id: row.source_id,
    customerId: row.customer_id,
    newestAt: row.newest_at,
    ...NOTHING_SAID,
    ...said,
    held,
    intervals: intervals.map(([productId, from, until, reason, eventId]) => ({
      productId,
      from,
      until,
      reason,
      eventId,
    })),
  }
}

/**
 * The events of a source, in the order of arrival.
 * @throws {LatchkeyError} `store_unavailable`
 */
export function readHistory({ history }: Pick<StoredSource, 'history'>): readonly HistoryEvent[] {
  const events = unpackHistory(history)
  if (events === null) throw unreadable('history')
  return events
}

function unreadable(what: 'state' | 'history'): LatchkeyError {
  return new LatchkeyError(
    'store_unavailable',
    `The ${what} of a source can’t be read: \`latchkey rebuild\` folds it anew from its events.`,
  )
}

function parsed(text: string): Partial<PackedState> | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
