import { type Kysely, sql } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup } from './bulk.js'
import { sourceKey } from './keys.js'
import type { Database, SourcesTable } from './schema.js'
import { loadEventsOfSources, type StoredSourceEvent } from './stored-sources.js'

/** A source as it stands, as it is stored. */
export type StandingSource = Pick<SourcesTable, 'customer_id' | 'state' | 'memory' | 'newest_at'>

/** All that is stored of one source. */
export interface WholeSource {
  readonly key: SourceKey
  /** In no order. */
  readonly events: readonly StoredSourceEvent[]
  /** Null: there are only events of it. */
  readonly standing: StandingSource | null
}

type SourceKeyColumns = Pick<SourcesTable, 'kind' | 'source_id'>

const selectStanding = bulkLookup(
  ['environment', 'kind', 'source_id'],
  (isTold) => sql<SourceKeyColumns & StandingSource>`
    select kind, source_id, customer_id, state, memory, newest_at from sources where ${isTold}`,
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
  const events = await loadEventsOfSources(db, environment, keys)
  return keys.map((key) => ({
    key,
    events: events.get(sourceKey(key)) ?? [],
    standing: standing.get(sourceKey(key)) ?? null,
  }))
}
