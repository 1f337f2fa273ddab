import { type Kysely, sql } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { ENVIRONMENTS } from './environments.js'
import type { StoredSourceKey } from './rebuild-progress.js'
import type { Database } from './schema.js'
import type { StoredSourceEvent } from './stored-sources.js'
import { loadWholeSources, type WholeSource } from './whole-sources.js'

/** Some sources of one environment, in the order of their keys. */
export interface SourceStep {
  readonly environment: Environment
  readonly sources: readonly WholeSource[]
  /** The key of the last one. */
  readonly last: StoredSourceKey
}

/**
 * The next sources after one: those that any stored event belongs to, and those that stand with no event left.
 * Null where there are no more.
 * @param rowsAtOnce how many events and sources are read at most; but a source of more comes whole, by itself
 */
export async function loadNextSources(
  db: Kysely<Database>,
  after: StoredSourceKey | null,
  rowsAtOnce: number,
): Promise<SourceStep | null> {
  for (const environment of ENVIRONMENTS) {
    if (after !== null && environment < after.environment) continue
    const from = after?.environment === environment ? after : BEFORE_ALL
    const rows = await loadNextRows(db, environment, from, rowsAtOnce)
    const isCut = rows.reduce((sum, { count }) => sum + Number(count), 0) === rowsAtOnce
    // More of the last source may follow.
    const whole = isCut && rows.length > 1 ? rows.slice(0, -1) : rows
    const last = whole.at(-1)
    if (last === undefined) continue
    const { kind, id } = last
    const isCutItself = isCut && rows.length === 1
    return {
      environment,
      sources: isCutItself ? await loadWholeSources(db, environment, [{ kind, id }]) : whole.map(toSource),
      last: { environment, kind, id },
    }
  }
  return null
}

const BEFORE_ALL = { kind: '', id: '' }

interface SourceRow extends SourceKey {
  readonly count: number | string | bigint
  /** In JSON, one after the other. */
  readonly events: string | null
  /** What became of each, in their order: the disposition and the reason, if any, with a colon between. */
  readonly outcomes: string | null
  readonly state: string | null
  readonly memory: string | null
}

/**
 * In one statement that merges two indexes, a row for each source: to fetch its events one by one, and to read each
 * by itself, takes half as long again.
 */
async function loadNextRows(
  db: Kysely<Database>,
  environment: Environment,
  { kind, id }: { readonly kind: string; readonly id: string },
  limit: number,
): Promise<readonly SourceRow[]> {
  const { rows } = await sql<SourceRow>`
    select kind, id, count(*) as count,
      string_agg(event, ',') as events, string_agg(outcome, ',') as outcomes,
      max(state) as state, max(memory) as memory
    from (
      select source_kind as kind, source_id as id, null as state, null as memory, normalized as event,
        case when normalized is not null then disposition || coalesce(':' || reason, '') end as outcome
      from events where environment = ${environment} and (source_kind, source_id) > (${kind}, ${id})
      union all
      select kind, source_id, state, memory, null, null
      from sources where environment = ${environment} and (kind, source_id) > (${kind}, ${id})
      order by 1, 2 limit ${limit}
    ) as walked
    group by kind, id order by kind, id
  `.execute(db)
  return rows
}

function toSource({ kind, id, events, outcomes, state, memory }: SourceRow): WholeSource {
  return {
    key: { kind, id },
    events: events === null || outcomes === null ? [] : toEvents(events, outcomes),
    standing: state === null ? null : { state, memory },
  }
}

/** As one text, since many small ones take longer to parse. */
function toEvents(events: string, outcomes: string): StoredSourceEvent[] {
  const told = outcomes.split(',')
  return (JSON.parse(`[${events}]`) as NormalizedEvent[]).map((event, i) => {
    const [disposition, reason = null] = told[i]?.split(':') ?? []
    return { event, disposition, reason } as StoredSourceEvent
  })
}
