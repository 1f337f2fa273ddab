import { type Kysely, sql } from 'kysely'
import type { SourceKey, SourceKind } from '../entitlements/model.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { bulkLookup } from './bulk.js'
import { sourceKey } from './keys.js'
import type { StoredSourceKey } from './rebuild-progress.js'
import type { Database, EventsTable } from './schema.js'

/** A stored event of a source, and what became of it. */
export interface StoredSourceEvent {
  readonly event: NormalizedEvent
  readonly disposition: EventsTable['disposition']
  readonly reason: EventsTable['reason']
}

/**
 * The next sources after one, in the order of their keys: those that any stored event belongs to, and those
 * that stand in the tables with no event left.
 */
export async function loadSourceKeys(
  db: Kysely<Database>,
  after: StoredSourceKey | null,
  limit: number,
): Promise<readonly StoredSourceKey[]> {
  const { environment, kind, id } = after ?? { environment: '', kind: '', id: '' }
  const { rows } = await sql<{ environment: Environment; kind: SourceKind; id: string }>`
    select * from (
      select distinct environment, source_kind as kind, source_id as id from events
      where source_kind is not null
        and (environment, source_kind, source_id) > (${environment}, ${kind}, ${id})
      order by environment, source_kind, source_id limit ${limit}
    ) as of_events
    union
    select * from (
      select environment, kind, source_id as id from sources
      where (environment, kind, source_id) > (${environment}, ${kind}, ${id})
      order by environment, kind, source_id limit ${limit}
    ) as standing
    order by environment, kind, id limit ${limit}
  `.execute(db)
  return rows
}

/** About how many sources there are. */
export async function countSources(db: Kysely<Database>): Promise<number> {
  const row = await db
    .selectFrom('sources')
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirst()
  return Number(row?.count ?? 0)
}

const selectEvents = bulkLookup(
  ['environment', 'source_kind', 'source_id'],
  (isTold) => sql<Pick<EventsTable, 'source_kind' | 'source_id' | 'normalized' | 'disposition' | 'reason'>>`
    select source_kind, source_id, normalized, disposition, reason from events
    where ${isTold}`,
)

/** By `sourceKey`, in no order; a source of which no event is stored has an empty list. */
export async function loadEventsOfSources(
  db: Kysely<Database>,
  environment: Environment,
  sources: readonly SourceKey[],
): Promise<ReadonlyMap<string, readonly StoredSourceEvent[]>> {
  const found = new Map<string, StoredSourceEvent[]>(sources.map((source) => [sourceKey(source), []]))
  const rows = await selectEvents(
    db,
    sources.map(({ kind, id }) => [environment, kind, id]),
  )
  for (const { source_kind: kind, source_id: id, normalized, disposition, reason } of rows) {
    if (kind === null || id === null || normalized === null) continue
    const event = JSON.parse(normalized) as NormalizedEvent
    found.get(sourceKey({ kind, id }))?.push({ event, disposition, reason })
  }
  return found
}

/** The next customers, in order, whose access is written down or follows from some source. */
export async function loadCustomerIds(
  db: Kysely<Database>,
  environment: Environment,
  after: string,
  limit: number,
): Promise<readonly string[]> {
  const { rows } = await sql<{ customer_id: string }>`
    select * from (
      select distinct customer_id from sources
      where environment = ${environment} and customer_id > ${after} order by customer_id limit ${limit}
    ) as of_sources
    union
    select * from (
      select distinct customer_id from entitlements
      where environment = ${environment} and customer_id > ${after} order by customer_id limit ${limit}
    ) as written
    order by customer_id limit ${limit}
  `.execute(db)
  return rows.map(({ customer_id: customerId }) => customerId)
}
