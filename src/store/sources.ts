import { type Kysely, type RawBuilder, type Selectable, sql, type Transaction } from 'kysely'
import { NOTHING_SHOWN } from '../entitlements/entitlement.js'
import { type HistoryEvent, unpackHistory } from '../entitlements/history.js'
import type { AccessInterval, SourceKey, SourceState } from '../entitlements/model.js'
import { compareText } from '../entitlements/order.js'
import { type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkLookup, bulkUpdate, bulkUpsert, lookupIn } from './bulk.js'
import type { Row } from './engine.js'
import type { Database, SourcesTable } from './schema.js'

/** A stored source: its folded state, and the history that the rules read. */
export interface StoredSource {
  /** Of its row. */
  readonly seq: number
  readonly state: SourceState
  /** As `packHistory` writes it. */
  readonly history: string
}

/** A newly folded source. */
export type FoldedSource = Pick<StoredSource, 'state' | 'history'>

/** The columns of a source. */
export type SourceRow = Omit<Selectable<SourcesTable>, 'environment'>

const selectRows = (matches: RawBuilder<unknown>) => sql<SourceRow>`
  select seq, kind, source_id, customer_id, newest_at, state, history from sources where ${matches}`
const selectSources = bulkLookup(['environment', 'kind', 'source_id'], selectRows)

export function loadSourceRows(
  db: Kysely<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<readonly SourceRow[]> {
  return selectSources(
    db,
    keys.map(({ kind, id }) => [environment, kind, id]),
  )
}

/** The stored sources of these customers. */
export const loadSourceRowsOf = lookupIn('customer_id', selectRows)

/**
 * By `sourceKey`; new sources are not in the map.
 * @throws {LatchkeyError} `store_unavailable` if a state can't be read
 */
export async function loadSources(
  db: Kysely<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<ReadonlyMap<string, StoredSource>> {
  const rows = await loadSourceRows(db, environment, keys)
  const sources = rows.map((row) => ({ seq: row.seq, state: stateOf(row), history: row.history }))
  return new Map(sources.map((source) => [sourceKey(source.state), source]))
}

/** Unordered: for `order by`, SQLite would read every source in the order of its key. */
const selectSourcesOfCustomers = lookupIn(
  'customer_id',
  (matches) => sql<StateRow>`
    select kind, source_id, customer_id, newest_at, state from sources where ${matches}`,
)

/** All sources of these customers, by customer id, in the order of kind and id. */
export async function loadSourcesOfCustomers(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly SourceState[]>> {
  const found = new Map<string, SourceState[]>(customerIds.map((id) => [id, []]))
  const rows = await selectSourcesOfCustomers(db, environment, [...found.keys()])
  for (const row of rows) {
    if (row.customer_id !== null) found.get(row.customer_id)?.push(stateOf(row))
  }
  for (const states of found.values()) {
    states.sort((a, b) => compareText(a.kind, b.kind) || compareText(a.id, b.id))
  }
  return found
}

const insert = bulkInsert('sources', [
  'environment',
  'kind',
  'source_id',
  'customer_id',
  'state',
  'history',
  'newest_at',
])

/** Setting the customer, even to the same value, would also write the index by customer: a page for each. */
const updateOfSameCustomer = bulkUpdate(
  ([state, history, newestAt, seq], from) => sql`
    update sources set state = ${state}, history = ${history}, newest_at = ${newestAt} ${from} where seq = ${seq}`,
)
const update = bulkUpdate(
  ([customerId, state, history, newestAt, seq], from) => sql`
    update sources set customer_id = ${customerId}, state = ${state}, history = ${history}, newest_at = ${newestAt}
    ${from} where seq = ${seq}`,
)

/** A source to save, and its stored row; undefined: it is new. */
interface SourceToSave extends FoldedSource {
  readonly saved: { readonly seq: number; readonly customerId: string | null } | undefined
}

/** Each source at most once. */
export async function saveSources(
  trx: Transaction<Database>,
  environment: Environment,
  sources: readonly SourceToSave[],
): Promise<void> {
  const created: SourceToSave[] = []
  const same: Row[] = []
  const handedOver: Row[] = []
  for (const source of sources) {
    const { state, history, saved } = source
    if (saved === undefined) created.push(source)
    else if (saved.customerId === state.customerId) {
      same.push([packState(state), history, state.newestAt, saved.seq])
    } else handedOver.push([state.customerId, packState(state), history, state.newestAt, saved.seq])
  }
  await updateOfSameCustomer(trx, same)
  await update(trx, handedOver)
  await insert(
    trx,
    created.map((source) => toRow(environment, source)),
  )
}

function toRow(environment: Environment, source: FoldedSource) {
  return { environment, kind: source.state.kind, source_id: source.state.id, ...sourceColumns(source) }
}

/** The stored state of a source, beside its key. */
export function sourceColumns({ state, history }: FoldedSource) {
  return {
    customer_id: state.customerId,
    state: packState(state),
    history,
    newest_at: state.newestAt,
  }
}

const remove = bulkLookup(
  ['environment', 'kind', 'source_id'],
  (matches) => sql`delete from sources where ${matches}`,
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

/** The columns of a state. */
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
  const packed: Record<string, unknown> = {
    intervals: state.intervals.map(
      ({ productId, from, until, reason, eventId }): PackedInterval => [
        productId,
        from,
        until,
        reason,
        eventId,
      ],
    ),
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

const selectLinks = lookupIn(
  'payment_id',
  (matches) => sql<PaymentLink>`
    select payment_id as "paymentId", subscription_id as "subscriptionId", linked_at as "linkedAt",
      linked_by as "linkedBy" from payment_links where ${matches}`,
)

/** By payment id; unlinked payments are not in the map. */
export async function loadLinks(
  db: Kysely<Database>,
  environment: Environment,
  paymentIds: readonly string[],
): Promise<ReadonlyMap<string, PaymentLink>> {
  const links = await selectLinks(db, environment, paymentIds)
  return new Map(links.map((link) => [link.paymentId, link]))
}

const upsertLinks = bulkUpsert(
  'payment_links',
  ['environment', 'payment_id'],
  ['subscription_id', 'linked_at', 'linked_by'],
)

/** Each payment at most once. */
export function saveLinks(
  trx: Transaction<Database>,
  environment: Environment,
  links: readonly PaymentLink[],
): Promise<void> {
  return upsertLinks(
    trx,
    links.map((link) => ({
      environment,
      payment_id: link.paymentId,
      subscription_id: link.subscriptionId,
      linked_at: link.linkedAt,
      linked_by: link.linkedBy,
    })),
  )
}

export const deleteLinks = lookupIn(
  'payment_id',
  (matches) => sql`delete from payment_links where ${matches}`,
)
