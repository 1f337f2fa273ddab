import { setImmediate as turn } from 'node:timers/promises'
import { CompiledQuery, type Kysely, type Selectable, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import type { Database, EventsTable, StoredDisposition } from './schema.js'

/** Which stored events of one environment are meant; null: all. Instants are epoch milliseconds. */
export interface EventFilter {
  readonly environment: Environment
  readonly disposition: StoredDisposition | null
  /** The canonical type: `payment.succeeded`, for either generation. */
  readonly type: string | null
  /** The customer that the event itself names. */
  readonly customerId: string | null
  readonly endpoint: string | null
  /** First received at this instant or after it. */
  readonly from: number | null
  /** First received before this instant. */
  readonly to: number | null
}

/** Looked at by one statement: some milliseconds, in which the thread does nothing else. */
const ROWS_PER_STEP = 500

/** By `seq`, the order of arrival. */
export type WalkOrder = 'newest first' | 'oldest first'

/** One stretch of the walk: which of the rows looked at match, in order. */
export interface WalkStep {
  readonly matching: readonly number[]
  readonly lookedAt: number
  /** Where it ended, and the next one begins beyond. */
  readonly last: number
  readonly isLast: boolean
}

/**
 * Walks through the stored events in bounded steps, beginning beyond a `seq` (null: at the end of all). Most filters
 * have no index: the caller decides how many steps to take. No step keeps a transaction open for the next.
 */
export async function* walkEvents(
  db: Kysely<Database>,
  filter: EventFilter,
  { order, beyond }: { readonly order: WalkOrder; readonly beyond: number | null },
): AsyncGenerator<WalkStep> {
  let from = beyond
  for (;;) {
    const rows = await glanceAtEvents(db, filter, order, from)
    const last = rows.at(-1)?.seq
    if (last === undefined) return
    const isLast = rows.length < ROWS_PER_STEP
    const matching = rows.filter((row) => matchesFilter(row, filter)).map(({ seq }) => seq)
    yield { matching, lookedAt: rows.length, last, isLast }
    if (isLast) return
    from = last
    await turn()
  }
}

const GLANCE_COLUMNS = [
  'seq',
  'environment',
  'endpoint',
  'received_at',
  'disposition',
  'type',
  'customer_id',
] as const

/** What a filter can ask of an event, and no more. */
export type EventGlance = Pick<Selectable<EventsTable>, (typeof GLANCE_COLUMNS)[number]>

/** The next rows beyond a `seq`: of the few events that wait where the filter is for those, else of all there are. */
export function glanceAtEvents(
  db: Kysely<Database>,
  { environment, disposition }: Pick<EventFilter, 'environment' | 'disposition'>,
  order: WalkOrder,
  beyond: number | null,
): Promise<readonly EventGlance[]> {
  const isNewestFirst = order === 'newest first'
  let query = db
    .selectFrom('events')
    .select(GLANCE_COLUMNS)
    .orderBy('seq', isNewestFirst ? 'desc' : 'asc')
    .limit(ROWS_PER_STEP)
  if (beyond !== null) query = query.where('seq', isNewestFirst ? '<' : '>', beyond)
  if (disposition === 'held' || disposition === 'quarantined') {
    query = query
      .where('environment', '=', environment)
      .where('disposition', '=', disposition)
      // In these very words: SQLite finds the index of these few events by them.
      .where(sql<boolean>`disposition in ('held', 'quarantined')`)
  }
  return query.execute()
}

/** Composed once: every batch asks. */
const SELECT_NEWEST = CompiledQuery.raw('select seq from events order by seq desc limit 1')

/** The `seq` of the newest stored event; 0 before the first. */
export async function newestSeq(db: Kysely<Database>): Promise<number> {
  const { rows } = await db.executeQuery<{ seq: number }>(SELECT_NEWEST)
  return rows[0]?.seq ?? 0
}

/** Whether a filter means the event. */
export function matchesFilter(event: Omit<EventGlance, 'seq'>, filter: EventFilter): boolean {
  return (
    event.environment === filter.environment &&
    (filter.disposition === null || event.disposition === filter.disposition) &&
    (filter.type === null || event.type === filter.type) &&
    (filter.customerId === null || event.customer_id === filter.customerId) &&
    (filter.endpoint === null || event.endpoint === filter.endpoint) &&
    (filter.from === null || event.received_at >= filter.from) &&
    (filter.to === null || event.received_at < filter.to)
  )
}
