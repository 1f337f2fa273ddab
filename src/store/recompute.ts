/* What a recompute keeps of its job, and the rows that it reads whole and compares: events as read and placed, and sources. */

import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, lookupIn, rowStatement } from './bulk.js'
import type { EventFilter } from './event-walk.js'
import { columnsOf, type EventReading, READ_COLUMNS, type ReadColumns } from './events.js'
import type { Database, EventsTable, SourcesTable } from './schema.js'
import { getSetting, setSetting } from './settings.js'

const JOB = 'recompute'
/** With a number after it: a part for each time that the job was saved, so that none is written twice. */
const PART = 'recompute.'

export const NOTHING_READ = {
  read: 0,
  /** Rows that the replay changed. */
  changed: 0,
  /** Of these, the ones that could not be used before. */
  recovered: 0,
  /** Read again, and still not usable. */
  quarantined: 0,
  /** Left as they are: another event has the id that they have by today's reading. */
  duplicates: 0,
  /** Left as they are: their endpoint receives for another environment by now. */
  skipped: 0,
  /** Folded as they are stored: their body was removed, so that they can't be read again. */
  notReplayable: 0,
  /** Folded as they are stored: their body is not the one that came, since something has altered it in the database. */
  altered: 0,
}

/** What became of the stored events that a replay has read again. */
export type ReplayCounts = Readonly<typeof NOTHING_READ>

/** What a job works out again. */
export interface JobScope {
  /** Which events; of a list of environments, all. */
  readonly scope: EventFilter | readonly Environment[]
  /** The environment of every configured endpoint, by its name, where events are read again; null: they are not. */
  readonly endpoints: Readonly<Record<string, Environment>> | null
}

/** A job that writes, under way or interrupted. */
export interface StoredJob extends JobScope {
  /** Whether it moves all sources to a policy that was put in force as it began: it has to end before any other. */
  readonly isMoving: boolean
  readonly policy: Policy
  readonly normalizerVersion: number
  /** The number of the newest event that was stored as it began: what comes later is read and folded as of today. */
  readonly newest: number
  /** The number up to which all events are done. */
  readonly reached: number
  readonly counts: ReplayCounts
  /** The newest change of access as it began. */
  readonly changesAfter: number
}

/** What else has to be known again after a crash. */
export interface JobPart {
  /** Numbers of events beyond its place that are done. */
  readonly ahead: readonly number[]
  readonly concerned: readonly Concern[]
}

/** A customer or a payment of which some event says something else since: all events have to be searched for it. */
export interface Concern {
  readonly environment: Environment
  readonly kind: 'customer' | 'payment'
  readonly id: string
}

/** Null where none is under way. */
export async function loadJob(db: Kysely<Database>): Promise<StoredJob | null> {
  const stored = await getSetting(db, JOB)
  return stored === null ? null : (JSON.parse(stored) as StoredJob)
}

export function saveJob(trx: Transaction<Database>, job: StoredJob): Promise<void> {
  return setSetting(trx, JOB, JSON.stringify(job))
}

export async function loadJobParts(db: Kysely<Database>): Promise<readonly JobPart[]> {
  const rows = await db.selectFrom('settings').select('value').where('key', 'like', `${PART}%`).execute()
  return rows.map(({ value }) => JSON.parse(value) as JobPart)
}

/** @param number one that no part of this job has */
export function saveJobPart(trx: Transaction<Database>, number: number, part: JobPart): Promise<void> {
  return setSetting(trx, `${PART}${number}`, JSON.stringify(part))
}

/** Forgets the job, ended or not, and all of its parts. */
export async function clearJob(trx: Transaction<Database>): Promise<void> {
  await trx
    .deleteFrom('settings')
    .where((eb) => eb.or([eb('key', '=', JOB), eb('key', 'like', `${PART}%`)]))
    .execute()
}

const GROUP_COLUMNS = [
  'seq',
  'environment',
  'event_id',
  'endpoint',
  'received_at',
  'disposition',
  'reason',
  'type',
  'customer_id',
  'source_kind',
  'source_id',
  'normalized',
] as const

/** A stored event: what it was read as, what became of it, and what a filter asks. */
export type GroupRow = Pick<Selectable<EventsTable>, (typeof GROUP_COLUMNS)[number]>

const columns = sql.join(GROUP_COLUMNS.map((column) => sql.ref(column)))

const selectBySeq = bulkLookup(
  ['seq'],
  (isTold) => sql<GroupRow>`select ${columns} from events where ${isTold}`,
)

export function loadGroupRows(db: Kysely<Database>, seqs: readonly number[]): Promise<readonly GroupRow[]> {
  return selectBySeq(
    db,
    seqs.map((seq) => [seq]),
  )
}

/** The next events, in the order of arrival. */
export async function loadGroupRowsBeyond(
  db: Kysely<Database>,
  beyond: number,
  end: number,
  limit: number,
): Promise<readonly GroupRow[]> {
  const { rows } = await sql<GroupRow>`
    select ${columns} from events where seq > ${beyond} and seq <= ${end} order by seq limit ${limit}`.execute(
    db,
  )
  return rows
}

const selectByHand = lookupIn(
  'customer_id',
  // In these very words: SQLite finds the index of these few events by them.
  (isTold) => sql<{ seq: number }>`select seq from events where ${isTold} and type like 'manual.%'`,
)

/** The numbers of what was done by hand to these customers. */
export async function loadSeqsByHand(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<readonly number[]> {
  return (await selectByHand(db, environment, customerIds)).map(({ seq }) => seq)
}

/** The source that an event is stored as being of. */
export function placeOf({ source_kind: kind, source_id: id }: GroupRow): SourceKey | null {
  return kind === null || id === null ? null : { kind, id }
}

/** A source's key, and what its events are found by. */
export type SourceHistory = SourceKey & Pick<Selectable<SourcesTable>, 'seq' | 'environment' | 'history'>

/** The next sources, in the order of their numbers; a damaged row may have any. */
export async function loadHistories(
  db: Kysely<Database>,
  after: number | undefined,
  limit: number,
): Promise<readonly SourceHistory[]> {
  const { rows } = await sql<SourceHistory>`
    select seq, environment, kind, source_id as id, history from sources
    where seq > ${after ?? Number.MIN_SAFE_INTEGER} order by seq limit ${limit}`.execute(db)
  return rows
}

/** A body has up to a mebibyte, and only so many are in memory at a time. */
const BODIES_AT_ONCE = 16

/** A stored event, without its bytes. */
export type ReplayedEvent = Omit<Selectable<EventsTable>, 'body'>

/** Stored events one by one with their bytes, in the order of arrival. */
export async function* loadBodies(
  db: Kysely<Database>,
  seqs: readonly number[],
): AsyncGenerator<Selectable<EventsTable>> {
  for (let i = 0; i < seqs.length; i += BODIES_AT_ONCE) {
    const some = seqs.slice(i, i + BODIES_AT_ONCE)
    yield* await db.selectFrom('events').selectAll().where('seq', 'in', some).orderBy('seq').execute()
  }
}

const PLACE_COLUMNS = ['source_kind', 'source_id', 'disposition', 'reason'] as const
/** What the body alone says. */
const FORM_COLUMNS = READ_COLUMNS.filter((name) => !PLACE_COLUMNS.some((place) => place === name))

/** Whether the row says of its body what this reading does, by the program of today. */
export function hasSameForm(row: ReadColumns, reading: EventReading): boolean {
  const read = columnsOf(reading)
  return FORM_COLUMNS.every((name) => row[name] === read[name])
}

/** An event and what is to be stored of it. */
export interface EventToSave {
  readonly row: Pick<GroupRow, 'seq' | 'event_id'>
  readonly reading: EventReading
}

const updateForms = updateOf(FORM_COLUMNS)

/** Writes where events belong, and what became of them. Each row at most once. */
export const savePlaces = updateOf(PLACE_COLUMNS)

function updateOf(names: readonly (keyof ReadColumns)[]) {
  const update = rowStatement((values) => {
    const set = sql.join(names.map((name, i) => sql`${sql.ref(name)} = ${values[i]}`))
    return sql`update events set ${set} where seq = ${values[names.length]}`
  })
  return async (trx: Transaction<Database>, events: readonly EventToSave[]): Promise<void> => {
    const rows = events.map(({ row, reading }) => ({ ...columnsOf(reading), seq: row.seq }))
    await update(
      trx,
      rows.map((row) => [...names.map((name) => row[name]), row.seq]),
    )
  }
}

const renameConflicts = rowStatement(
  ([nextId, environment, id]) => sql`
    update event_conflicts set event_id = ${nextId} where environment = ${environment} and event_id = ${id}`,
)

/**
 * Writes what the bodies say. Each row at most once; no id may be another event's. Other bodies that came under an id go
 * along with it.
 */
export async function saveForms(
  trx: Transaction<Database>,
  environment: Environment,
  events: readonly EventToSave[],
): Promise<void> {
  await updateForms(trx, events)
  const renamed = events.filter(({ row, reading }) => row.event_id !== reading.eventId)
  await renameConflicts(
    trx,
    renamed.map(({ row, reading }) => [reading.eventId, environment, row.event_id]),
  )
}
