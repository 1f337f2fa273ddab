import { type Kysely, sql } from 'kysely'
import { afterErasures, foldBlocks, foldErasures } from '../entitlements/by-hand.js'
import type { Block, SourceState } from '../entitlements/model.js'
import type { Environment, ManualEvent } from '../provider/event.js'
import { bulkStatement } from './bulk.js'
import { EPOCH_SETTING, formatCursor, NO_EPOCH } from './change-cursor.js'
import type { Database } from './schema.js'
import { type StateRow, stateOf } from './sources.js'
import { eventInForm } from './stored-form.js'

/** What an answer about one customer is worked out from. */
export interface Grounds {
  /** Where the change log stood no later than the rest was read, as it is told. */
  readonly cursor: string
  /** As they stand for the customer, in no order. */
  readonly sources: readonly SourceState[]
  readonly blocks: readonly Block[]
}

/** A source's state, an event by hand, or where the change log is, as text. */
type GroundRow =
  | ({ readonly part: 'source' } & StateRow)
  | {
      readonly part: 'manual' | 'cursor' | 'epoch'
      readonly customer_id: string | null
      readonly event_id: string | null
      readonly state: string | null
    }

/** In one statement, since each takes and leaves the locks of a reader (of 116 µs an answer, that saved 14). */
const selectGrounds = bulkStatement(
  (keys) => sql<GroundRow>`
    with asked (environment, customer_id) as (${keys})
    select 'source' as part, sources.customer_id, null as event_id, sources.state, sources.kind, sources.source_id,
      sources.newest_at from asked
    join sources on sources.environment = asked.environment and sources.customer_id = asked.customer_id
    union all
    select 'manual', events.customer_id, events.event_id, events.normalized, null, null, null from asked
    join events on events.environment = asked.environment and events.customer_id = asked.customer_id
    where events.type like 'manual.%'
    union all
    select 'cursor', null, null, cast(max(cursor) as text), null, null, null from changes
    union all
    select 'epoch', null, null, value, null, null, null from settings where key = ${sql.lit(EPOCH_SETTING)}`,
)

/** By customer id. */
export async function loadGrounds(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, Grounds>> {
  const sources = new Map<string, SourceState[]>(customerIds.map((id) => [id, []]))
  const events = new Map<string, ManualEvent[]>(customerIds.map((id) => [id, []]))
  const rows = await selectGrounds(
    db,
    [...sources.keys()].map((id) => [environment, id]),
  )
  let cursor: number | null = null
  let epoch = NO_EPOCH
  for (const row of rows) {
    // The first of several: a change that commits in between is then told twice, never missed.
    if (row.part === 'cursor') cursor ??= Number(row.state)
    else if (row.part === 'epoch') epoch = row.state ?? epoch
    else if (row.part === 'source') sources.get(row.customer_id ?? '')?.push(stateOf(row))
    else if (row.state !== null && row.event_id !== null) {
      const event = eventInForm(row.state, row.event_id)
      // A provider's event may bear any type; what was done by hand is known by its subject.
      if (event.subject === 'manual') events.get(event.customerId)?.push(event)
    }
  }
  return new Map(
    [...sources].map(([id, own]) => {
      const byHand = events.get(id) ?? []
      const erasures = foldErasures(byHand)
      return [
        id,
        {
          cursor: formatCursor(epoch, cursor ?? 0),
          sources: own.map((source) => afterErasures(source, erasures)),
          blocks: foldBlocks(byHand),
        },
      ]
    }),
  )
}
