import { setImmediate as turn } from 'node:timers/promises'
import { type Selectable, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkLookup } from './bulk.js'
import { ask, fixedQuery } from './engine.js'
import type { Db, EventsTable, StoredDisposition } from './schema.js'

/** Selects stored events of one environment; null: all. Instants are epoch milliseconds. */
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
  /** This event alone; as good as null where it is absent, as in what older versions stored. */
  readonly eventId?: string | null
}

/** A filter of a list, whose last parts lead to their events by index. */
export interface EventPageFilter extends EventFilter {
  /** A payment that the event names, or whose source it belongs to. */
  readonly paymentId: string | null
  /** The subscription that the event belongs to. */
  readonly subscriptionId: string | null
  /** True: another body came under its id. */
  readonly conflicts: boolean | null
}

/** Rows per statement: some milliseconds, during which the thread does nothing else. */
const ROWS_PER_STEP = 500

/** By `seq`, the order of arrival. */
export type WalkOrder = 'newest first' | 'oldest first'

/**
 * Walks through the stored events in bounded steps, beginning after a `seq` (null: at the end). Most filters have no
 * index: the caller decides how many steps to take. Steps don't share a transaction.
 */
export async function* walkEvents(db: Db, filter: EventFilter, order: WalkOrder, beyond: number | null) {
  let from = beyond
  for (;;) {
    const rows = await scanEventHeaders(db, filter, order, from)
    const last = rows.at(-1)?.seq
    if (last === undefined) return
    const isLast = rows.length < ROWS_PER_STEP
    const matching = rows.filter((row) => matchesFilter(row, filter)).map(({ seq }) => seq)
    // `last` is the last row read, matching or not: the next step begins after it.
    yield { matching, lookedAt: rows.length, last, isLast }
    if (isLast) return
    from = last
    await turn()
  }
}

/** The columns that a filter needs. */
export type EventGlance = Pick<
  Selectable<EventsTable>,
  'seq' | 'environment' | 'event_id' | 'endpoint' | 'received_at' | 'disposition' | 'type' | 'customer_id'
>

const SELECT_GLANCES = sql<EventGlance>`
  select seq, environment, event_id, endpoint, received_at, disposition, type, customer_id from events where`

/** The next rows after a `seq`: of one event or among waiting ones if the filter is for those, else among all. */
export async function scanEventHeaders(
  db: Db,
  { environment, disposition, eventId }: Pick<EventFilter, 'environment' | 'disposition' | 'eventId'>,
  order: WalkOrder,
  beyond: number | null,
): Promise<readonly EventGlance[]> {
  const [direction, isAfter] = order === 'newest first' ? [sql`desc`, sql`<`] : [sql`asc`, sql`>`]
  const isBeyond = beyond === null ? sql`` : sql`and seq ${isAfter} ${beyond}`
  const isOf = sql`environment = ${environment}`
  // SQLite uses the index of waiting events only for exactly this text.
  const isWaiting = sql`${isOf} and disposition = ${disposition} and disposition in ('held', 'quarantined')`
  const isForWaiting = disposition === 'held' || disposition === 'quarantined'
  const isNamed = (eventId ?? null) !== null
  const isAsked = isNamed ? sql`${isOf} and event_id = ${eventId}` : isForWaiting ? isWaiting : sql`true`
  const { rows } = await sql<EventGlance>`
    ${SELECT_GLANCES} ${isAsked} ${isBeyond} order by seq ${direction} limit ${ROWS_PER_STEP}`.execute(db)
  return rows
}

const selectGlances = bulkLookup(['seq'], SELECT_GLANCES)

/** The same walk through events of known numbers, in any order, newest first. */
export async function* walkNumbered(
  db: Db,
  filter: EventFilter,
  seqs: readonly number[],
  before: number | null,
) {
  const left = seqs.filter((seq) => before === null || seq < before).sort((a, b) => b - a)
  for (let start = 0; start < left.length; start += ROWS_PER_STEP) {
    const step = left.slice(start, start + ROWS_PER_STEP)
    const rows = await selectGlances(
      db,
      step.map((seq) => [seq]),
    )
    const matching = rows.filter((row) => matchesFilter(row, filter)).map(({ seq }) => seq)
    const isLast = start + ROWS_PER_STEP >= left.length
    yield { matching: matching.sort((a, b) => b - a), lookedAt: rows.length, last: step.at(-1) ?? 0, isLast }
    await turn()
  }
}

/** Compiled once: every batch runs it. */
const SELECT_NEWEST = fixedQuery('newest', 'select seq from events order by seq desc limit 1')

/** The `seq` of the newest stored event; 0 before the first. */
export async function newestSeq(db: Db): Promise<number> {
  const [newest] = await ask<{ seq: number }>(db, SELECT_NEWEST)
  return newest?.seq ?? 0
}

export function matchesFilter(event: Omit<EventGlance, 'seq'>, filter: EventFilter): boolean {
  return (
    event.environment === filter.environment &&
    (filter.disposition === null || event.disposition === filter.disposition) &&
    (filter.type === null || event.type === filter.type) &&
    (filter.customerId === null || event.customer_id === filter.customerId) &&
    (filter.endpoint === null || event.endpoint === filter.endpoint) &&
    (filter.from === null || event.received_at >= filter.from) &&
    (filter.to === null || event.received_at < filter.to) &&
    ((filter.eventId ?? null) === null || event.event_id === filter.eventId)
  )
}
