import { type Kysely, sql } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from './environments.js'
import type { StoredSourceKey } from './keys.js'
import type { Database } from './schema.js'
import { eventsInForms } from './stored-form.js'
import type { StoredSourceEvent } from './stored-sources.js'
import { loadWholeSources, type StandingSource, type WholeSource } from './whole-sources.js'

/**
 * How far a walk through all sources is. First come those that stand, in the order in which they came to be: their
 * events lie about so in the table, and are read from one page after the other (in the order of keys, from anywhere,
 * a walk took a third to a half as long again). Then come those of which there are only events, in the order of keys.
 */
export type WalkPlace =
  | { readonly among: 'standing'; readonly afterSeq: number }
  | { readonly among: 'events'; readonly after: StoredSourceKey | null }

/** Before whatever number a row may have. */
export const WALK_START: WalkPlace = { among: 'standing', afterSeq: Number.MIN_SAFE_INTEGER }

export interface SourceStep {
  readonly sources: ReadonlyMap<Environment, readonly WholeSource[]>
  /** Where to go on. */
  readonly place: WalkPlace
}

/** Keys alone are read from an index: so many take about as long as one event with all that it says. */
const KEYS_PER_ROW = 5

/**
 * The next sources: those that stand, with an event or without, and those that any stored event belongs to. There may
 * be none in a step. Null after the last one.
 * @param rowsAtOnce how many events and sources are read at most; but a source of more comes whole, by itself
 */
export async function loadNextSources(
  db: Kysely<Database>,
  place: WalkPlace,
  rowsAtOnce: number,
): Promise<SourceStep | null> {
  const standing = place.among === 'standing' ? await loadStanding(db, place.afterSeq, rowsAtOnce) : null
  if (standing !== null) return standing
  return loadMissing(db, place.among === 'events' ? place.after : null, rowsAtOnce * KEYS_PER_ROW)
}

interface SourceRow extends StoredSourceKey, StandingSource {
  readonly seq: number
  readonly count: number | string | bigint
  /** In JSON, one after the other. */
  readonly events: string | null
  /** Of each, in their order: its number, what became of it and why, if there is a reason, with colons between. */
  readonly outcomes: string | null
}

async function loadStanding(
  db: Kysely<Database>,
  afterSeq: number,
  limit: number,
): Promise<SourceStep | null> {
  const rows = await loadRows(db, afterSeq, limit)
  const isCut = rows.reduce((sum, { count }) => sum + Number(count), 0) === limit
  // More of the last source may follow.
  const whole = isCut && rows.length > 1 ? rows.slice(0, -1) : rows
  const last = whole.at(-1)
  if (last === undefined) return null
  const place: WalkPlace = { among: 'standing', afterSeq: last.seq }
  if (isCut && rows.length === 1) {
    return { sources: new Map([[last.environment, [await loadByItself(db, last)]]]), place }
  }
  const sources = new Map<Environment, WholeSource[]>()
  for (const row of whole) {
    const source = toSource(row) ?? (await loadByItself(db, row))
    const known = sources.get(row.environment)
    if (known) known.push(source)
    else sources.set(row.environment, [source])
  }
  return { sources, place }
}

/** In one statement, a row for each source: to fetch its events one by one takes half as long again. */
async function loadRows(
  db: Kysely<Database>,
  afterSeq: number,
  limit: number,
): Promise<readonly SourceRow[]> {
  const { rows } = await sql<SourceRow>`
    select seq, max(environment) as environment, max(kind) as kind, max(source_id) as id,
      max(customer_id) as customer_id, max(state) as state, max(history) as history, max(newest_at) as newest_at,
      count(*) as count,
      string_agg(event, ',') as events, string_agg(outcome, ',') as outcomes
    from (
      select s.seq, s.environment, s.kind, s.source_id, s.customer_id, s.state, s.history, s.newest_at,
        e.normalized as event,
        case when e.normalized is not null
          then e.seq || ':' || e.disposition || coalesce(':' || e.reason, '') end as outcome
      from sources s left join events e
        on e.environment = s.environment and e.source_kind = s.kind and e.source_id = s.source_id
      where s.seq > ${afterSeq} order by s.seq limit ${limit}
    ) as walked
    group by seq order by seq
  `.execute(db)
  return rows
}

/** Null where not all of its events can be read. */
function toSource({
  kind,
  id,
  events: forms,
  outcomes,
  customer_id,
  state,
  history,
  newest_at,
}: SourceRow): WholeSource | null {
  const events = forms === null || outcomes === null ? [] : toEvents(forms, outcomes)
  if (events === null) return null
  const standing = { customer_id, state, history, newest_at }
  return { key: { kind, id }, events, standing, unreadable: null }
}

/** As one text, since many small ones take longer to parse. */
function toEvents(forms: string, outcomes: string): StoredSourceEvent[] | null {
  const told = outcomes.split(',')
  const events = eventsInForms(forms, told.length)
  if (events === null) return null
  return events.map((event, i) => {
    const [seq, disposition, reason = null] = told[i]?.split(':') ?? []
    return { seq: Number(seq), event, disposition, reason } as StoredSourceEvent
  })
}

/** Its events one by one: one that can't be read is known by its id. */
async function loadByItself(
  db: Kysely<Database>,
  { environment, kind, id }: StoredSourceKey,
): Promise<WholeSource> {
  const [source] = await loadWholeSources(db, environment, [{ kind, id }])
  return source as WholeSource
}

/** Of which nothing stands, among the sources of the next events. */
async function loadMissing(
  db: Kysely<Database>,
  after: StoredSourceKey | null,
  limit: number,
): Promise<SourceStep | null> {
  for (const environment of ENVIRONMENTS) {
    if (after !== null && environment < after.environment) continue
    const from = after?.environment === environment ? after : BEFORE_ALL
    const keys = await loadKeys(db, environment, from, limit)
    const last = keys.at(-1)
    if (last === undefined) continue
    const missing = keys.filter(({ seq }) => seq === null).map(({ kind, id }) => ({ kind, id }))
    return {
      sources: new Map([[environment, await loadWholeSources(db, environment, missing)]]),
      place: { among: 'events', after: { environment, kind: last.kind, id: last.id } },
    }
  }
  return null
}

const BEFORE_ALL = { kind: '', id: '' }

/** The sources of the next events, so many at most, in the order of their keys; those that stand with their number. */
async function loadKeys(
  db: Kysely<Database>,
  environment: Environment,
  { kind, id }: { readonly kind: string; readonly id: string },
  limit: number,
): Promise<readonly (SourceKey & { readonly seq: number | null })[]> {
  const { rows } = await sql<SourceKey & { seq: number | null }>`
    select told.source_kind as kind, told.source_id as id, s.seq
    from (
      select distinct source_kind, source_id from (
        select source_kind, source_id from events
        where environment = ${environment} and (source_kind, source_id) > (${kind}, ${id})
        order by source_kind, source_id limit ${limit}
      ) as next_events
    ) as told
    left join sources s
      on s.environment = ${environment} and s.kind = told.source_kind and s.source_id = told.source_id
    order by told.source_kind, told.source_id
  `.execute(db)
  return rows
}
