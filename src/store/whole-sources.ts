import { type Kysely, sql } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import { isLatchkeyError, type LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup } from './bulk.js'
import { sourceKey } from './keys.js'
import type { Database, SourcesTable } from './schema.js'
import { loadEventsOfSources, type StoredSourceEvent } from './stored-sources.js'

/** A source as it stands, as it is stored. */
export type StandingSource = Pick<SourcesTable, 'customer_id' | 'state' | 'history' | 'newest_at'>

/** All that is stored of one source. */
export interface WholeSource {
  readonly key: SourceKey
  /** In no order; none where not all can be read. */
  readonly events: readonly StoredSourceEvent[]
  /** Null: there are only events of it. */
  readonly standing: StandingSource | null
  /** `store_unavailable`: which of its events can't be read, hence nothing be folded from them. */
  readonly unreadable: LatchkeyError | null
}

type SourceKeyColumns = Pick<SourcesTable, 'kind' | 'source_id'>

const selectStanding = bulkLookup(
  ['environment', 'kind', 'source_id'],
  (isTold) => sql<SourceKeyColumns & StandingSource>`
    select kind, source_id, customer_id, state, history, newest_at from sources where ${isTold}`,
)

/** In the order of the keys; of a key that nothing is stored of, a source without anything. */
export async function loadWholeSources(
  db: Kysely<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<readonly WholeSource[]> {
  const rows = await selectStanding(
    db,
    keys.map(({ kind, id }) => [environment, kind, id]),
  )
  const standing = new Map(
    rows.map(({ kind, source_id: id, ...source }) => [sourceKey({ kind, id }), source]),
  )
  const found = await loadAllEvents(db, environment, keys)
  return keys.map((key) => {
    const { events, unreadable } = found.get(sourceKey(key)) ?? NO_EVENTS
    return { key, events, unreadable, standing: standing.get(sourceKey(key)) ?? null }
  })
}

type EventsOfSource = Pick<WholeSource, 'events' | 'unreadable'>

const NO_EVENTS: EventsOfSource = { events: [], unreadable: null }

/** By `sourceKey`: of all together, and where that fails of each by itself, to know which it is. */
async function loadAllEvents(
  db: Kysely<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<ReadonlyMap<string, EventsOfSource>> {
  try {
    const found = await loadEventsOfSources(db, environment, keys)
    return new Map([...found].map(([key, events]) => [key, { events, unreadable: null }]))
  } catch (error) {
    if (!isLatchkeyError(error, 'store_unavailable')) throw error
    const [only] = keys
    if (only !== undefined && keys.length === 1) {
      return new Map([[sourceKey(only), { events: [], unreadable: error }]])
    }
    const each: [string, EventsOfSource][] = []
    for (const key of keys) each.push(...(await loadAllEvents(db, environment, [key])))
    return new Map(each)
  }
}
