import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { HoldReason, SourceKey } from '../entitlements/model.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkStatement } from './bulk.js'
import type { Database, EventsTable, SourcesTable, StoredDisposition } from './schema.js'

/** A stored event: what it was read as, what became of it, and what a filter asks. */
export type GroupRow = Pick<
  Selectable<EventsTable>,
  | 'seq'
  | 'environment'
  | 'event_id'
  | 'endpoint'
  | 'received_at'
  | 'disposition'
  | 'reason'
  | 'type'
  | 'customer_id'
  | 'source_kind'
  | 'source_id'
  | 'normalized'
>

const COLUMNS = sql`seq, environment, event_id, endpoint, received_at, disposition, reason, type, customer_id,
  source_kind, source_id, normalized`

const selectBySeq = bulkLookup(
  ['seq'],
  (isTold) => sql<GroupRow>`select ${COLUMNS} from events where ${isTold}`,
)

export function loadGroupRows(db: Kysely<Database>, seqs: readonly number[]): Promise<readonly GroupRow[]> {
  return selectBySeq(
    db,
    seqs.map((seq) => [seq]),
  )
}

/** The next events, in the order of arrival. */
export async function loadGroupRowsBeyond(
  db: Kysely<Database>,
  beyond: number,
  end: number,
  limit: number,
): Promise<readonly GroupRow[]> {
  const { rows } = await sql<GroupRow>`
    select ${COLUMNS} from events where seq > ${beyond} and seq <= ${end} order by seq limit ${limit}`.execute(
    db,
  )
  return rows
}

/** Which source an event belongs to. */
export type EventPlace = Pick<GroupRow, 'seq' | 'environment' | 'source_kind' | 'source_id'>

/** The same of the next events, in the order of arrival. */
export async function loadPlaces(
  db: Kysely<Database>,
  beyond: number,
  end: number,
  limit: number,
): Promise<readonly EventPlace[]> {
  const { rows } = await sql<EventPlace>`
    select seq, environment, source_kind, source_id from events
    where seq > ${beyond} and seq <= ${end} order by seq limit ${limit}`.execute(db)
  return rows
}

const selectPlaces = bulkLookup(
  ['seq'],
  (isTold) => sql<EventPlace>`select seq, environment, source_kind, source_id from events where ${isTold}`,
)

/** The same of these. */
export function loadPlacesOf(db: Kysely<Database>, seqs: readonly number[]): Promise<readonly EventPlace[]> {
  return selectPlaces(
    db,
    seqs.map((seq) => [seq]),
  )
}

/** A source, as the columns hold it. */
export type SourceRow = Omit<Selectable<SourcesTable>, 'seq' | 'environment'>

const SOURCE_COLUMNS = sql`kind, source_id, customer_id, state, history, newest_at`

const selectSources = bulkLookup(
  ['environment', 'kind', 'source_id'],
  (isTold) => sql<SourceRow>`select ${SOURCE_COLUMNS} from sources where ${isTold}`,
)

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

const selectSourcesOf = bulkLookup(
  ['environment', 'customer_id'],
  (isTold) => sql<SourceRow>`select ${SOURCE_COLUMNS} from sources where ${isTold}`,
)

/** The sources that are stored as of these customers. */
export function loadSourceRowsOf(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<readonly SourceRow[]> {
  return selectSourcesOf(
    db,
    customerIds.map((id) => [environment, id]),
  )
}

export function keyOfSource({ kind, source_id: id }: SourceRow): SourceKey {
  return { kind, id }
}

export function nameOfSource(row: SourceRow): string {
  return sourceKey(keyOfSource(row))
}

/** Where an event belongs, and what became of it. */
export interface MovedEvent {
  readonly seq: number
  readonly source: SourceKey | null
  readonly disposition: StoredDisposition
  readonly reason: HoldReason | null
}

const move = bulkStatement(
  (events) => sql`
    with told (seq, source_kind, source_id, disposition, reason) as (${events})
    update events set source_kind = told.source_kind, source_id = told.source_id, disposition = told.disposition,
      reason = told.reason
    from told where events.seq = cast(told.seq as bigint)`,
)

export async function moveEvents(trx: Transaction<Database>, events: readonly MovedEvent[]): Promise<void> {
  await move(
    trx,
    events.map(({ seq, source, disposition, reason }) => [
      seq,
      source?.kind ?? null,
      source?.id ?? null,
      disposition,
      reason,
    ]),
  )
}

/** One page of a search through all sources, or all customers with an entitlement. */
export interface Orphans<Found, Cursor> {
  readonly found: readonly Found[]
  /** Where to go on; null: those were all. */
  readonly next: Cursor | null
}

/** A source's key, and what its events are found by. */
export type SourceHistory = Pick<Selectable<SourcesTable>, 'seq' | 'environment' | 'kind' | 'history'> & {
  readonly id: string
}

/** The next sources, in the order of their numbers. */
export async function loadHistories(
  db: Kysely<Database>,
  after: number,
  limit: number,
): Promise<readonly SourceHistory[]> {
  const { rows } = await sql<SourceHistory>`
    select seq, environment, kind, source_id as id, history from sources
    where seq > ${after} order by seq limit ${limit}`.execute(db)
  return rows
}

interface CustomerKey {
  readonly environment: Environment
  readonly customerId: string
}

/** Customers with an entitlement and without any source. */
export async function loadCustomersWithoutSources(
  db: Kysely<Database>,
  after: CustomerKey | null,
  limit: number,
): Promise<Orphans<CustomerKey, CustomerKey>> {
  const { rows } = await sql<CustomerKey & { has_sources: number }>`
    select environment, customer_id as "customerId", exists (
      select 1 from sources where sources.environment = told.environment
        and sources.customer_id = told.customer_id
    ) as has_sources
    from (
      select distinct environment, customer_id from entitlements
      where (environment, customer_id) > (${after?.environment ?? ''}, ${after?.customerId ?? ''})
      order by environment, customer_id limit ${limit}
    ) as told order by environment, customer_id`.execute(db)
  const last = rows.at(-1)
  return {
    found: rows
      .filter((row) => !row.has_sources)
      .map(({ environment, customerId }) => ({ environment, customerId })),
    next: last === undefined ? null : { environment: last.environment, customerId: last.customerId },
  }
}
