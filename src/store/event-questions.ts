import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { HoldReason, SourceKey } from '../entitlements/model.js'
import { HOLD_REASON_TEXT } from '../entitlements/reasons.js'
import { type Environment, QUARANTINE_TEXT, type QuarantineReason } from '../provider/event.js'
import { type EventPageFilter, matchesFilter, walkEvents, walkNumbered } from './event-walk.js'
import { type DeliveryInput, signedHeaders } from './events.js'
import { placeOf } from './recompute.js'
import type { BodyColumns, Db, EventsTable } from './schema.js'
import { loadLinks, loadSourceRows, readHistory } from './sources.js'
import { eventInForm, isAltered, sha256Of } from './stored-form.js'

/** A fraction of a second of work, which alternates with everything else in the process. */
const MAX_LOOKED_AT = 20_000

/** Bounds the answer if a sender signs another body at each attempt. */
const OTHER_BODIES_SHOWN = 100

/**
 * A page of stored events, newest first. It may be short or empty and still have a next one: looking further would
 * have taken too long. It starts before the `seq` in `before`; null: at the newest.
 * @param maxLookedAt how many rows one page may read, matching or not; it always takes one full step
 */
export async function readEventPage(
  db: Db,
  { filter, before, limit }: Readonly<{ filter: EventPageFilter; before: number | null; limit: number }>,
  maxLookedAt = MAX_LOOKED_AT,
) {
  const found: number[] = []
  let next: number | null = null
  let lookedAt = 0
  const named = await seqsNamed(db, filter)
  const steps =
    named === null ? walkEvents(db, filter, 'newest first', before) : walkNumbered(db, filter, named, before)
  for await (const step of steps) {
    found.push(...step.matching)
    lookedAt += step.lookedAt
    if (found.length > limit) next = found[limit - 1] ?? null
    else if (lookedAt >= maxLookedAt && !step.isLast) next = step.last
    if (next !== null) break
  }
  if (found.length === 0) return { items: [], next }
  const rows = await loadSummaries(db, sql`seq in (${sql.join(found.slice(0, limit))})`)
  const items: StoredEvent[] = []
  // Checked against the filter again: an event may have stopped waiting since it was found.
  for (const row of rows) {
    const columns = { event_id: row.id, customer_id: row.customerId, received_at: row.receivedAt }
    if (matchesFilter({ ...row, ...columns }, filter)) items.push(await toStoredEvent(db, row))
  }
  return { items, next }
}

/** The numbers of the events of its payment, its subscription and its conflicts; null: the filter names none of them. */
async function seqsNamed(
  db: Db,
  { environment, paymentId, subscriptionId, conflicts }: EventPageFilter,
): Promise<readonly number[] | null> {
  const sets: (readonly number[])[] = []
  if (paymentId !== null) sets.push(await seqsOfPayment(db, environment, paymentId))
  if (subscriptionId !== null) {
    const source = { kind: 'subscription', id: subscriptionId } as const
    sets.push((await eventsOfSources(db, environment, [source])).map(({ seq }) => seq))
  }
  if (conflicts) sets.push(await seqsInConflict(db, environment))
  const [first, ...rest] = sets
  if (first === undefined) return null
  const others = rest.map((seqs) => new Set(seqs))
  return first.filter((seq) => others.every((set) => set.has(seq)))
}

/** The events that name the payment, in its source: that of its subscription, once an event has linked it to one. */
async function seqsOfPayment(db: Db, environment: Environment, paymentId: string) {
  const link = (await loadLinks(db, environment, [paymentId])).get(paymentId)
  const source: SourceKey =
    link === undefined
      ? { kind: 'payment', id: paymentId }
      : { kind: 'subscription', id: link.subscriptionId }
  const events = await eventsOfSources(db, environment, [source])
  return events.flatMap((event) =>
    event.subject !== 'manual' && event.paymentId === paymentId ? event.seq : [],
  )
}

async function eventsOfSources(db: Db, environment: Environment, keys: readonly SourceKey[]) {
  const rows = await loadSourceRows(db, environment, keys)
  return rows.flatMap(readHistory)
}

async function seqsInConflict(db: Db, environment: Environment): Promise<readonly number[]> {
  const { rows } = await sql<{ seq: number }>`
    select distinct events.seq from event_conflicts as other
    join events on events.environment = other.environment and events.event_id = other.event_id
    where other.environment = ${environment}`.execute(db)
  return rows.map(({ seq }) => seq)
}

export interface EventQuery {
  readonly environment: Environment
  readonly eventId: string
}

/** Everything about one event except its bytes; null if it is not stored. Personal data: never logged. */
export async function readEvent(db: Db, { environment, eventId }: EventQuery) {
  const isUnderId = sql`environment = ${environment} and event_id = ${eventId}`
  const [row] = await loadSummaries(db, isUnderId)
  if (row === undefined) return null
  const others = await sql<OtherBodyRow>`
    select body_sha256 as sha256, coalesce(body_bytes, length(body)) as bytes, endpoint,
      received_at as "receivedAt", deliveries, body_removed, body_removed_at
    from event_conflicts where ${isUnderId}
    order by received_at, body_sha256 limit ${OTHER_BODIES_SHOWN}`.execute(db)
  return {
    ...(await toStoredEvent(db, row)),
    reasonText: row.reason === null ? null : { ...HOLD_REASON_TEXT, ...QUARANTINE_TEXT }[row.reason],
    normalized: row.normalized === null ? null : eventInForm(row.normalized, eventId),
    headers: signedHeaders(headersIn(row)),
    otherBodies: others.rows.map(({ body_removed, body_removed_at, ...other }) => ({
      ...other,
      removed: removalIn({ body_removed, body_removed_at }),
    })),
  }
}

/** Another body that came under the id of a stored event, and changed nothing, as it came. */
type OtherBodyRow = RemovalColumns &
  Pick<BodyColumns, 'endpoint'> &
  Readonly<Record<'bytes' | 'receivedAt' | 'deliveries', number>> & { readonly sha256: string }

/**
 * Null if there is no such event, or no such body under its id.
 * @param sha256 one of the bodies under this id, by its hash in lower-case hex; null: the event's own
 */
export async function readEventBody(db: Db, { environment, eventId }: EventQuery, sha256: string | null) {
  const bodyIn = async (table: 'events' | 'event_conflicts', which = sql`true`) => {
    const { rows } = await sql<BodyRow>`
      select body_sha256, body, body_removed, body_removed_at from ${sql.table(table)}
      where environment = ${environment} and event_id = ${eventId} and ${which}`.execute(db)
    return rows[0] ?? null
  }
  const own = await bodyIn('events')
  const body = own && toBody(own)
  // A rewritten body is also found by its new hash, since users see that one.
  if (sha256 === null || sha256 === own?.body_sha256 || sha256 === body?.sha256) return body
  const other = await bodyIn('event_conflicts', sql`body_sha256 = ${sha256}`)
  return other && toBody(other)
}

type BodyRow = RemovalColumns & Pick<BodyColumns, 'body_sha256' | 'body'>

function toBody(row: BodyRow) {
  /** If it is set, the bytes are not the original ones. */
  const removed = removalIn(row)
  /** Of the bytes, in lower-case hex; if they are gone (null), of the original. */
  const sha256 = removed === null || row.body === null ? row.body_sha256 : sha256Of(row.body)
  return { sha256, bytes: row.body, removed }
}

/** `bodySha256` and `bodyBytes` are those of the original body. */
type SummaryRow = Pick<
  Selectable<EventsTable>,
  'seq' | 'environment' | 'endpoint' | 'generation' | 'type' | 'disposition' | 'reason' | 'deliveries'
> &
  Pick<Selectable<EventsTable>, 'headers' | 'normalized' | 'source_kind' | 'source_id'> &
  RemovalColumns &
  Readonly<
    Record<'receivedAt' | 'lastReceivedAt' | 'normalizerVersion' | 'bodyBytes' | 'conflicts', number>
  > &
  Readonly<Record<'id' | 'bodySha256', string>> & {
    readonly createdAt: number | null
    readonly customerId: string | null
  }

/** All columns of events except their bytes, of which only the length is read; newest first. */
async function loadSummaries(db: Db, which: RawBuilder<unknown>): Promise<readonly SummaryRow[]> {
  const { rows } = await sql<SummaryRow>`
    select seq, event_id as id, environment, endpoint, generation, type, disposition, reason,
      created_at as "createdAt", received_at as "receivedAt", last_received_at as "lastReceivedAt", deliveries,
      customer_id as "customerId", source_kind, source_id, normalizer_version as "normalizerVersion", headers,
      normalized, body_sha256 as "bodySha256", coalesce(body_bytes, length(body)) as "bodyBytes", body_removed,
      body_removed_at, (select count(*) from event_conflicts as other
        where other.environment = events.environment and other.event_id = events.event_id) as conflicts
    from events where ${which} order by seq desc`.execute(db)
  return rows
}

/** An event as shown; instants are epoch milliseconds. Hash and length are those of the stored bytes. */
export type StoredEvent = Awaited<ReturnType<typeof toStoredEvent>>

async function toStoredEvent(db: Db, { headers: _, normalized: _form, ...row }: SummaryRow) {
  const { seq, source_kind, source_id, body_removed, body_removed_at, ...event } = row
  const removed = removalIn({ body_removed, body_removed_at })
  const came = { sha256: event.bodySha256, bytes: event.bodyBytes }
  const shown = removed?.why === 'redacted' ? ((await readLeft(db, seq)) ?? came) : came
  return {
    ...event,
    source: placeOf({ source_kind, source_id }),
    bodySha256: shown.sha256,
    bodyBytes: shown.bytes,
    bodyRemoved: removed && { ...removed, ...came },
  }
}

/** Hash and length of a rewritten body; one body is in memory at a time. */
async function readLeft(db: Db, seq: number) {
  const row = await db.selectFrom('events').select('body').where('seq', '=', seq).executeTakeFirst()
  return row?.body ? { sha256: sha256Of(row.body), bytes: row.body.length } : null
}

type RemovalColumns = Pick<BodyColumns, 'body_removed' | 'body_removed_at'>

/** Null: the original body is stored. */
function removalIn({ body_removed: why, body_removed_at: at }: RemovalColumns) {
  return why === null || at === null ? null : { why, at }
}

/** Why a delivery can't be exported: its bytes were removed, or altered. */
export type MissingDelivery = 'removed' | 'altered'

/** These events in the order of arrival, each followed by other bodies that came under its id. */
export async function* loadDeliveries(db: Db, seqs: readonly number[]) {
  const events = await db.selectFrom('events').selectAll().where('seq', 'in', seqs).orderBy('seq').execute()
  for (const event of events) {
    yield toDelivery(event, event.normalized)
    const isOther = sql`environment = ${event.environment} and event_id = ${event.event_id}`
    const { rows: hashes } = await sql<{ sha256: string }>`
      select body_sha256 as sha256 from event_conflicts
      where ${isOther} order by received_at, body_sha256`.execute(db)
    // One by one: a body has up to a mebibyte, and there may be many.
    for (const { sha256 } of hashes) {
      const { rows } = await sql<BodyColumns>`
        select * from event_conflicts where ${isOther} and body_sha256 = ${sha256}`.execute(db)
      for (const other of rows) yield toDelivery(other, null)
    }
  }
}

/** Undefined where they were altered in the database, so that nobody can read them. */
function headersIn(row: Pick<BodyColumns, 'headers'>): DeliveryInput['headers'] | undefined {
  try {
    const headers: unknown = JSON.parse(row.headers)
    const isKnown = typeof headers === 'object' || headers === 'reported'
    return isKnown ? (headers as DeliveryInput['headers']) : undefined
  } catch {
    return undefined
  }
}

function toDelivery(row: BodyColumns, normalized: string | null): DeliveryInput | MissingDelivery {
  const headers = headersIn(row)
  if (isAltered(row) || headers === undefined) return 'altered'
  const { environment, endpoint, received_at: receivedAt, body } = row
  const delivered = { environment, endpoint, headers, receivedAt }
  const removal = removalIn(row)
  // Changes by hand are not signed: a rewritten one is as good as the original.
  if (body !== null && (removal === null || headers === null)) return { ...delivered, body }
  if (removal === null || headers === null || normalized === null) return 'removed'
  const event = eventInForm(normalized, row.event_id)
  const removed = { ...removal, bytes: row.body_bytes ?? 0 }
  return {
    ...delivered,
    body: body ?? Buffer.alloc(0),
    reading: { event, bodySha256: row.body_sha256, removed },
  }
}

/** Stored events without effect so far: until a later event says more, or an operator acts. */
export interface WaitingReason {
  readonly environment: Environment
  readonly disposition: 'held' | 'quarantined'
  readonly reason: HoldReason | QuarantineReason
  readonly count: number
  /** When the first of them arrived, in epoch milliseconds. */
  readonly oldestAt: number
}

/** As literals: otherwise SQLite would not use the index of waiting events. */
const IS_WAITING = sql`disposition in ('held', 'quarantined')`

/** Reads an index of these events, and the first stored ones. */
export async function countWaiting(db: Db) {
  const { rows } = await sql<Omit<WaitingReason, 'reason'>>`
    select waiting.*, events.received_at as "oldestAt" from (
      select environment, disposition, count(*) as count, min(seq) as first from events
      where ${IS_WAITING} group by environment, disposition) as waiting
    join events on events.seq = waiting.first`.execute(db)
  return rows
}

/** Reads each waiting event. */
export async function countWaitingByReason(db: Db): Promise<readonly WaitingReason[]> {
  const { rows } = await sql<WaitingReason>`
    select environment, disposition, reason, count(*) as count, min(received_at) as "oldestAt" from events
    where ${IS_WAITING} group by environment, disposition, reason
    order by environment, disposition, reason`.execute(db)
  return rows
}

/** The first events under whose ids other bodies came. */
export async function firstConflicts(db: Db, limit: number) {
  const { rows } = await sql<{ environment: Environment; eventId: string }>`
    select distinct environment, event_id as "eventId" from event_conflicts
    order by environment, event_id limit ${limit}`.execute(db)
  return rows
}

/** A body has up to a mebibyte. */
const BODIES_AT_ONCE = 16

/**
 * Compares every stored body with its hash, except bodies that retention or an erasure removed or rewrote. Few per
 * query, so that a daemon beside it is not held up. Returns how many were read and altered, and the first altered one.
 */
export async function compareBodies(db: Db) {
  let [read, altered, first]: [number, number, string | null] = [0, 0, null]
  for (const [table, key] of Object.entries(KEYS)) {
    const order = sql.join(key.map((column) => sql.ref(column)))
    for (let last: Selectable<EventsTable> | undefined; ; ) {
      const reached = last && key.map((column) => last?.[column])
      const { rows }: { rows: Selectable<EventsTable>[] } = await sql<Selectable<EventsTable>>`
        select * from ${sql.table(table)} where ${reached ? sql`(${order}) > (${sql.join(reached)})` : sql`true`}
        order by ${order} limit ${BODIES_AT_ONCE}`.execute(db)
      last = rows.at(-1)
      if (last === undefined) break
      for (const row of rows.filter((one) => one.body_removed === null)) {
        read += 1
        if (!isAltered(row)) continue
        altered += 1
        first ??= `${row.event_id} in ${row.environment}`
      }
    }
  }
  return { read, altered, first }
}

/** The key column to walk each table by. */
const KEYS = { events: ['seq'], event_conflicts: ['environment', 'event_id', 'body_sha256'] } as const
