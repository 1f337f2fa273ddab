/* The change log: every change of an entitlement, in the order of writing, and its cursors. */

import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { type RawBuilder, type Selectable, sql } from 'kysely'
import { NEVER_GRANTED } from '../entitlements/entitlement.js'
import type { AccessSnapshot } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { bulkInsert, lookupAs, statementAbout } from './bulk.js'
import { ask, type Engine, engineOf, fixedQuery, inSnapshot, type NamedQuery } from './engine.js'
import type { ChangesTable, Db, PersonKey, Tx } from './schema.js'
import { getSetting, setSetting } from './settings.js'

/** One change of one entitlement, by an event, by time alone, or by a recompute. */
export interface NewChange extends PersonKey {
  /** When it was written, in epoch milliseconds. */
  readonly at: number
  readonly productId: string
  readonly before: AccessSnapshot
  readonly after: AccessSnapshot
  readonly cause: { readonly kind: ChangesTable['cause_kind']; readonly eventId: string | null }
}

export interface Change extends NewChange {
  /** Increases with every change, and is never reused. */
  readonly cursor: number
}

const insert = bulkInsert('changes')

const COLUMNS = sql`at, environment, customer_id, product_id, before, after, cause_kind, cause_event_id`

/** With numbers from the place of their transaction on. */
const insertPlaced = statementAbout(
  ({ values: [n, ...values], from }) => sql`
    insert into change_log (cursor, ${COLUMNS}) select place.first + ${n}, ${sql.join(values)}
    ${from} cross join (select change_log_place() as first) as place`,
)

/** So many numbers lie between two transactions: a transaction beside others that appends more may meet the next. */
export const PLACES = 4_096

/** How many changes each transaction has appended, where it numbers them itself. */
const appended = new WeakMap<Tx, number>()

/** Appends in the order given. */
export async function appendChanges(trx: Tx, changes: readonly NewChange[]): Promise<void> {
  if (engineOf(trx).changeLog === 'changes') {
    const rows = changes.map(({ customerId, productId, before, after, cause, ...change }) => ({
      ...change,
      customer_id: customerId,
      product_id: productId,
      before: JSON.stringify(before),
      after: JSON.stringify(after),
      cause_kind: cause.kind,
      cause_event_id: cause.eventId,
    }))
    return insert(trx, rows)
  }
  for (let i = 0; i < changes.length; ) {
    const from = appended.get(trx) ?? 0
    const some = changes.slice(i, i + PLACES - (from % PLACES))
    // What goes beyond the place uses up the number of the next transaction: no later one may have a lower place.
    if (from >= PLACES) await sql`savepoint beyond`.execute(trx)
    const rows = some.map(({ at, environment, customerId, productId, before, after, cause }, n) => {
      const access = [JSON.stringify(before), JSON.stringify(after)]
      return [from + n, at, environment, customerId, productId, ...access, cause.kind, cause.eventId]
    })
    await insertPlaced(trx, rows)
    if (from >= PLACES) await sql`release savepoint beyond`.execute(trx)
    appended.set(trx, from + some.length)
    i += some.length
  }
}

/** Selects changes. Instants are epoch milliseconds. */
export interface ChangeFilter {
  readonly customerId?: string | undefined
  /** Written at this instant or after it. */
  readonly from?: number | undefined
  /** Written before this instant. */
  readonly to?: number | undefined
  /**
   * Up to this cursor, at or before which nothing is written any more: one that a reader has seen, say. Otherwise, to the
   * end of the log, which may go back for a moment: a second statement may lack changes that a first one had.
   */
  readonly upTo?: number | undefined
}

/**
 * The changes of one environment, or of all (null), after a cursor, oldest first. Reads the log from there on, or all
 * changes of the customer.
 */
export async function loadChanges(
  db: Db,
  environment: Environment | null,
  after: number,
  limit: number,
  { customerId, from, to, upTo }: ChangeFilter = {},
) {
  let changes = db
    .selectFrom(upTo === undefined ? 'changes' : engineOf(db).changeLog)
    .selectAll()
    .where('cursor', '>', after)
  if (upTo !== undefined) changes = changes.where('cursor', '<=', upTo)
  if (environment !== null) changes = changes.where('environment', '=', environment)
  if (customerId !== undefined) changes = changes.where('customer_id', '=', customerId)
  if (from !== undefined) changes = changes.where('at', '>=', from)
  if (to !== undefined) changes = changes.where('at', '<', to)
  return (await changes.orderBy('cursor').limit(limit).execute()).map(changeOf)
}

const lookupOfCustomers = (log: Engine['changeLog']) =>
  lookupAs(
    'customer_id',
    sql<Selectable<ChangesTable>>`select * from ${sql.table(log)} where`,
    (rows): readonly Change[] => rows.sort((a, b) => a.cursor - b.cursor).map(changeOf),
  )

const OF_CUSTOMERS = {
  changes: lookupOfCustomers('changes'),
  change_log: lookupOfCustomers('change_log'),
} as const

/** All committed changes of these customers, oldest first. */
export function loadChangesOfCustomers(db: Db, environment: Environment, customerIds: readonly string[]) {
  return OF_CUSTOMERS[engineOf(db).changeLog](db, environment, customerIds)
}

/**
 * The changes of a stretch of time after a cursor, ordered by time: even if a clock was set back while they were
 * written, the pages together have each once.
 */
export function loadChangesOfTime(
  db: Db,
  environment: Environment,
  after: number,
  limit: number,
  time: Pick<ChangeFilter, 'from' | 'to'>,
): Promise<readonly Change[]> {
  const load = (reader: Db) => changesOfTime(reader, environment, after, limit, time)
  // Where others write at the time, its statements must have one end of the log.
  return engineOf(db).isRemote ? inSnapshot(db, load) : load(db)
}

async function changesOfTime(
  db: Db,
  environment: Environment,
  after: number,
  limit: number,
  { from = 0, to }: Pick<ChangeFilter, 'from' | 'to'>,
) {
  const last = db.selectFrom(engineOf(db).changeLog).select('at').where('cursor', '<=', after)
  const reached = await last.orderBy('cursor', 'desc').limit(1).executeTakeFirst()
  const ofEnvironment = db.selectFrom('changes').selectAll().where('environment', '=', environment)
  const ofTime = to === undefined ? ofEnvironment : ofEnvironment.where('at', '<', to)
  const page = (rows: typeof ofTime) => rows.orderBy('at').orderBy('cursor').limit(limit).execute()
  if (reached === undefined || reached.at < from)
    return (await page(ofTime.where('at', '>=', from))).map(changeOf)
  // Two statements: for both conditions in one, SQLite would read every change of that instant again.
  const ofSameInstant = await page(ofTime.where('at', '=', reached.at).where('cursor', '>', after))
  const later = ofSameInstant.length < limit ? await page(ofTime.where('at', '>', reached.at)) : []
  return [...ofSameInstant, ...later].slice(0, limit).map(changeOf)
}

/** The newest change of all environments that readers see; 0 before the first. It may go back for a moment. */
export function latestCursor(db: Db): Promise<number> {
  return highestIn(db, 'changes')
}

/** The newest committed change of all environments; 0 before the first. */
export function newestCursor(db: Db): Promise<number> {
  return highestIn(db, engineOf(db).changeLog)
}

/** All committed changes, under the name of the log: for those whose cursors are stored, readers have seen them. */
export function committedChanges(db: Db): RawBuilder<unknown> {
  return sql`${sql.table(engineOf(db).changeLog)} as changes`
}

async function highestIn(db: Db, log: Engine['changeLog']): Promise<number> {
  const { rows } = await sql<{ cursor: number }>`
    select cursor from ${sql.table(log)} order by cursor desc limit 1`.execute(db)
  return rows[0]?.cursor ?? 0
}

/** A transaction of Latchkey's takes milliseconds. One that goes on for longer is waited for no longer. */
const READABLE_WITHIN_MS = 2_000
const LOOK_AGAIN_MS = 20

/** Resolves once readers see every change that is committed now; or after a while, where something holds the log up. */
export async function untilReadable(db: Db): Promise<void> {
  const newest = await newestCursor(db)
  for (let waited = 0; waited < READABLE_WITHIN_MS; waited += LOOK_AGAIN_MS) {
    if ((await latestCursor(db)) >= newest) return
    await wait(LOOK_AGAIN_MS)
  }
}

export interface LogEnd {
  /** Of the newest change that readers see; 0 before the first. */
  readonly cursor: number
  /** Whether changes are committed that readers don't see yet. */
  readonly isBehind: boolean
  /**
   * Whether the next statement may see less of it, for a moment: a transaction is under way that is older than a change.
   * That of another database holds nothing up, but while it ends nobody can tell whose it was.
   */
  readonly mayGoBack: boolean
}

/** By the table of all. `oldest`: the place of the oldest transaction under way on the server. */
const LOG_ENDS: Readonly<Record<Engine['changeLog'], NamedQuery>> = {
  changes: logEndIn('changes', 'null'),
  change_log: logEndIn(
    'change_log',
    `select (pg_snapshot_xmin(pg_current_snapshot())::text::bigint - coalesce(max(xid), 0)) * ${PLACES}
      + coalesce(max(cursor), 0) from change_log_base`,
  ),
}

function logEndIn(all: Engine['changeLog'], oldest: string): NamedQuery {
  const highest = (log: string) => `select coalesce(max(cursor), 0) from ${log}`
  return fixedQuery(
    'log_end',
    `select (${highest('changes')}) as cursor, (${highest(all)}) as newest, (${oldest}) as oldest`,
  )
}

/** In one statement, so that all is of the same moment. */
export async function logEnd(db: Db): Promise<LogEnd> {
  const [end] = await ask<{ cursor: number; newest: number; oldest: number | null }>(
    db,
    LOG_ENDS[engineOf(db).changeLog],
  )
  const { cursor = 0, newest = 0, oldest = null } = end ?? {}
  return { cursor, isBehind: newest > cursor, mayGoBack: oldest !== null && newest >= oldest }
}

export function changeOf(row: Selectable<ChangesTable>): Change {
  const { cursor, at, environment, customer_id: customerId, product_id: productId } = row
  const [before, after] = [snapshotIn(row.before), snapshotIn(row.after)]
  const cause = { kind: row.cause_kind, eventId: row.cause_event_id }
  return { cursor, at, environment, customerId, productId, before, after, cause }
}

/** A row that is older than a field of what is shown lacks it. */
function snapshotIn(json: string): AccessSnapshot {
  return { ...NEVER_GRANTED, ...JSON.parse(json) }
}

export const EPOCH_SETTING = 'change_log_epoch'

/** For a store that no daemon has opened yet. */
export const NO_EPOCH = '0'

/**
 * Names the change log that the numbers belong to. A restored store reuses numbers from before the restore for other
 * changes: the epoch tells the two apart.
 */
export async function changeLogEpoch(db: Db): Promise<string> {
  return (await getSetting(db, EPOCH_SETTING)) ?? NO_EPOCH
}

/** Invalidates all earlier cursors. */
export async function startChangeLogEpoch(trx: Tx): Promise<void> {
  await setSetting(trx, EPOCH_SETTING, randomBytes(6).toString('hex'))
}

/** Gives the store an epoch if it has none: a newly created database also counts from the beginning. */
export function ensureChangeLogEpoch(db: Db): Promise<void> {
  return db.transaction().execute(async (trx) => {
    if ((await getSetting(trx, EPOCH_SETTING)) === null) await startChangeLogEpoch(trx)
  })
}

/** A place in the change log as users see it: opaque to them. */
export function formatCursor(epoch: string, number: number): string {
  return `${epoch}.${number}`
}

/** The number in a cursor; null: it is not of this epoch. */
export function numberIn(epoch: string, cursor: string): number | null {
  const [, given, digits] = /^(\w+)\.(\d{1,16})$/.exec(cursor) ?? []
  const number = Number(digits)
  return given === epoch && Number.isSafeInteger(number) ? number : null
}

/** The later of two places of one log, as users see them. */
export function laterCursor(a: string, b: string): string {
  const [epoch = ''] = a.split('.')
  const [first, second] = [numberIn(epoch, a), numberIn(epoch, b)]
  return first !== null && second !== null && second < first ? a : b
}

export interface ChangePageQuery extends Omit<ChangeFilter, 'upTo'> {
  readonly environment: Environment
  /** A cursor of a change, or of an answer about access; null: from the first change. */
  readonly after: string | null
  /** As in `ChangeFilter`. */
  readonly upTo?: string
  readonly limit: number
}

/** A change with its cursor as users see it. */
export interface ListedChange extends Omit<Change, 'cursor'> {
  readonly cursor: string
}

/** The changes after a cursor, oldest first, at most `limit`; null for a cursor that is not of this log. */
export async function readChangePage(
  db: Db,
  { environment, after, upTo, limit, ...filter }: ChangePageQuery,
) {
  const epoch = await changeLogEpoch(db)
  const number = after === null ? 0 : numberIn(epoch, after)
  const end = upTo === undefined ? undefined : numberIn(epoch, upTo)
  if (number === null || end === null || number > (await newestCursor(db))) return null
  const isOfTime = filter.customerId === undefined && (filter.from !== undefined || filter.to !== undefined)
  const changes = isOfTime
    ? await loadChangesOfTime(db, environment, number, limit, filter)
    : await loadChanges(db, environment, number, limit, { ...filter, upTo: end })
  return changes.map((change) => ({ ...change, cursor: formatCursor(epoch, change.cursor) }))
}
