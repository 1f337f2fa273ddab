import { type Insertable, type Selectable, sql } from 'kysely'
import type { DerivedSource } from '../entitlements/derive.js'
import { NOTHING_SHOWN } from '../entitlements/entitlement.js'
import { type HistoryEvent, unpackHistory } from '../entitlements/history.js'
import type { AccessInterval, SourceKey, SourceState } from '../entitlements/model.js'
import { type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { compareText } from '../provider/order.js'
import {
  bulkInsert,
  bulkLookup,
  bulkUpsert,
  inEnvironment,
  lookupAs,
  lookupIn,
  pipelined,
  statementAbout,
} from './bulk.js'
import type { Row } from './engine.js'
import type { Db, SourcesTable, Tx } from './schema.js'

export interface StoredSource extends DerivedSource {
  /** Of its row. */
  readonly seq: number
}

export type SourceRow = Omit<Selectable<SourcesTable>, 'environment'>

const SELECT_ROWS = sql<SourceRow>`
  select seq, kind, source_id, customer_id, newest_at, state, history from sources where`
const KEY = ['environment', 'kind', 'source_id']
const keyOf = ({ kind, id }: SourceKey) => [kind, id]

export const loadSourceRows = inEnvironment(bulkLookup(KEY, SELECT_ROWS), keyOf)

export const loadSourceRowsOf = lookupIn('customer_id', SELECT_ROWS)

/**
 * By `sourceKey`; new sources are not in the map.
 * @throws {LatchkeyError} `store_unavailable` if a state can't be read
 */
export async function loadSources(db: Db, environment: Environment, keys: readonly SourceKey[]) {
  const rows = await loadSourceRows(db, environment, keys)
  const sources = rows.map((row) => ({ seq: row.seq, state: stateOf(row), history: row.history }))
  return new Map(sources.map((source) => [sourceKey(source.state), source]))
}

/** All sources of these customers, by customer id, in the order of kind and id. */
export const loadSourcesOfCustomers = lookupAs(
  'customer_id',
  // Unordered: for `order by`, SQLite would read every source in the order of its key.
  sql<StateRow>`select kind, source_id, customer_id, newest_at, state from sources where`,
  (rows): ReadonlyMap<string, readonly SourceState[]> => {
    const states = rows.map(stateOf)
    states.sort((a, b) => compareText(a.kind, b.kind) || compareText(a.id, b.id))
    return Map.groupBy(states, ({ customerId }) => String(customerId))
  },
)

/** The next sources of all environments after a `seq`, in that order. */
export async function loadSourcesAfter(db: Db, after: number, limit: number) {
  const { rows } = await sql<StateRow & Pick<Selectable<SourcesTable>, 'seq' | 'environment'>>`
    select seq, environment, kind, source_id, customer_id, newest_at, state from sources
    where seq > ${after} order by seq limit ${limit}`.execute(db)
  return rows.map((row) => ({ seq: row.seq, environment: row.environment, state: stateOf(row) }))
}

const insert = bulkInsert('sources')

/** Setting the customer, even to the same value, would also write the index by customer: a page for each. */
const updateOfSameCustomer = statementAbout(
  ({ values: [state, history, newestAt, seq], from }) => sql`
    update sources set state = ${state}, history = ${history}, newest_at = ${newestAt} ${from} where seq = ${seq}`,
)
const update = statementAbout(
  ({ values: [customerId, state, history, newestAt, seq], from }) => sql`
    update sources set customer_id = ${customerId}, state = ${state}, history = ${history}, newest_at = ${newestAt}
    ${from} where seq = ${seq}`,
)

/** A source to save, and its stored row; undefined: it is new. */
interface SourceToSave extends DerivedSource {
  readonly saved: { readonly seq: number; readonly customerId: string | null } | undefined
}

/** Each source at most once. */
export async function saveSources(trx: Tx, environment: Environment, sources: readonly SourceToSave[]) {
  const created: Insertable<SourcesTable>[] = []
  const same: Row[] = []
  const handedOver: Row[] = []
  for (const { saved, ...source } of sources) {
    const { kind, id } = source.state
    const columns = sourceColumns(source)
    const { customer_id: customerId, state, history, newest_at: newestAt } = columns
    if (saved === undefined) created.push({ environment, kind, source_id: id, ...columns })
    else if (saved.customerId === customerId) same.push([state, history, newestAt, saved.seq])
    else handedOver.push([customerId, state, history, newestAt, saved.seq])
  }
  await pipelined([updateOfSameCustomer(trx, same), update(trx, handedOver), insert(trx, created)])
}

/** The stored state of a source, beside its key. */
export function sourceColumns({ state, history }: DerivedSource) {
  return { customer_id: state.customerId, state: packState(state), history, newest_at: state.newestAt }
}

/** For a payment whose events have all moved to a subscription. */
export const deleteSources = inEnvironment(bulkLookup(KEY, sql`delete from sources where`), keyOf)

export type StateRow = Pick<SourcesTable, 'kind' | 'source_id' | 'customer_id' | 'newest_at' | 'state'>

type PackedInterval = readonly [string, number, number | null, AccessInterval['reason'], string]

/** The fields without a column of their own, without the defaults in `NOTHING_SAID`: short rows seldom split a page. */
interface PackedState extends Partial<Omit<SourceState, 'intervals'>> {
  readonly intervals: readonly PackedInterval[]
}

const NOTHING_SAID = {
  rail: 'unknown',
  ...NOTHING_SHOWN,
  cyclesWithoutPayment: 0,
} satisfies Partial<SourceState>

const NAMES = Object.keys(NOTHING_SAID) as (keyof typeof NOTHING_SAID)[]

function packState(state: SourceState): string {
  const intervals = state.intervals.map(({ productId, from, until, reason, eventId }): PackedInterval => {
    return [productId, from, until, reason, eventId]
  })
  const packed: Record<string, unknown> = { intervals }
  for (const name of NAMES) if (state[name] !== NOTHING_SAID[name]) packed[name] = state[name]
  for (const _ in state.held) {
    packed.held = state.held
    break
  }
  if (state.grantsByHand !== undefined) packed.grantsByHand = state.grantsByHand
  return JSON.stringify(packed)
}

/**
 * Only damage makes a state unreadable.
 * @throws {LatchkeyError} `store_unavailable`
 */
export function stateOf(row: StateRow): SourceState {
  const { intervals, held = {}, ...said } = packedIn(row.state)
  return {
    kind: row.kind,
    id: row.source_id,
    customerId: row.customer_id,
    newestAt: row.newest_at,
    ...NOTHING_SAID,
    ...said,
    held,
    intervals: intervals.map(([productId, from, until, reason, eventId]) => {
      return { productId, from, until, reason, eventId }
    }),
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
    `The ${what} of a source can’t be read: \`latchkey rebuild\` folds it again from its events.`,
  )
}

function packedIn(state: string): PackedState {
  try {
    const packed = JSON.parse(state)
    if (Array.isArray(packed.intervals)) return packed
  } catch {
    // Not JSON: the same error as for JSON of another shape.
  }
  throw unreadable('state')
}

/* The subscription of each payment. */

/** By payment id; unlinked payments are not in the map. */
export const loadLinks = lookupAs(
  'payment_id',
  sql<PaymentLink>`
    select payment_id as "paymentId", subscription_id as "subscriptionId", linked_at as "linkedAt",
      linked_by as "linkedBy" from payment_links where`,
  (links): ReadonlyMap<string, PaymentLink> => new Map(links.map((link) => [link.paymentId, link])),
)

const upsertLinks = bulkUpsert('payment_links', ['environment', 'payment_id'])

/** Each payment at most once. */
export function saveLinks(trx: Tx, environment: Environment, links: readonly PaymentLink[]): Promise<void> {
  const rows = links.map((link) => ({
    environment,
    payment_id: link.paymentId,
    subscription_id: link.subscriptionId,
    linked_at: link.linkedAt,
    linked_by: link.linkedBy,
  }))
  return upsertLinks(trx, rows)
}

export const deleteLinks = lookupIn('payment_id', sql`delete from payment_links where`)
