import { type Kysely, type Selectable, sql } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { bulkLookup } from './bulk.js'
import { sourceKey } from './keys.js'
import type { Database, EventsTable } from './schema.js'
import { eventInForm } from './stored-form.js'

/** A stored event of a source, and what became of it. */
export interface StoredSourceEvent {
  /** Its number in the order of arrival. */
  readonly seq: number
  readonly event: NormalizedEvent
  readonly disposition: EventsTable['disposition']
  readonly reason: EventsTable['reason']
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
  (isTold) => sql<
    Pick<
      Selectable<EventsTable>,
      'seq' | 'source_kind' | 'source_id' | 'event_id' | 'normalized' | 'disposition' | 'reason'
    >
  >`
    select seq, source_kind, source_id, event_id, normalized, disposition, reason from events
    where ${isTold}`,
)

/**
 * By `sourceKey`, in no order; a source of which no event is stored has an empty list.
 * @throws {LatchkeyError} `store_unavailable` where what one was read as can't be read
 */
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
  for (const { seq, source_kind: kind, source_id: id, event_id, normalized, disposition, reason } of rows) {
    if (kind === null || id === null || normalized === null) continue
    const event = eventInForm(normalized, event_id)
    found.get(sourceKey({ kind, id }))?.push({ seq, event, disposition, reason })
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
