/* What a recompute keeps of its job, and the rows that it reads whole and compares: events as read and placed, and sources. */

import { type Selectable, sql } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, lookupAs, statementAbout } from './bulk.js'
import type { Row } from './engine.js'
import type { EventFilter, EventGlance } from './event-walk.js'
import { type EventReading, formColumns, placeColumns } from './events.js'
import type { Db, EventsTable, SourcesTable, Tx } from './schema.js'
import { getSetting, setSetting } from './settings.js'

const JOB = 'recompute'
/** Followed by a number: a part for each time that the job was saved, so that no part is written twice. */
const PART = 'recompute.'

export const NOTHING_READ = {
  read: 0,
  /** Those that say something else now. */
  changed: 0,
  /** Those among them that could not be used before. */
  recovered: 0,
  /** Read again, and still not usable. */
  quarantined: 0,
  /** Left as they are: by the current reading, another event has their id. */
  duplicates: 0,
  /** Left as they are: their endpoint now receives for another environment. */
  skipped: 0,
  /** Folded as stored: their body was removed, so they can't be read again. */
  notReplayable: 0,
  /** Folded as stored: their body was altered in the database. */
  altered: 0,
}

export type ReplayCounts = Readonly<typeof NOTHING_READ>

export interface JobScope {
  /** Which events; of a list of environments, all. */
  readonly scope: EventFilter | readonly Environment[]
  /** Every configured endpoint, by name, if events are read again; null: they are not. */
  readonly endpoints: Readonly<Record<string, Pick<Endpoint, 'environment' | 'aheadAtMostMs'>>> | null
}

/** A job that writes, running or interrupted. */
export interface StoredJob extends JobScope {
  /** Whether it moves all sources to a policy that it put in force: it has to end before any other job. */
  readonly isMoving: boolean
  readonly policy: Policy
  readonly normalizerVersion: number
  /** The newest stored event when it began: later ones are read and folded by the current program anyway. */
  readonly newest: number
  /** All events up to this number are done. */
  readonly reached: number
  readonly counts: ReplayCounts
  /** The newest change of access when it began. */
  readonly changesAfter: number
}

/** Further state that must survive a crash. */
export interface JobPart {
  /** Events beyond its place that are done. */
  readonly ahead: readonly number[]
  readonly concerned: readonly Concern[]
}

/** A customer or payment that some event now says something else about: all events must be searched for it. */
export interface Concern {
  readonly environment: Environment
  readonly kind: 'customer' | 'payment'
  readonly id: string
}

/** Of what is stored of jobs. Version 1.0.0 wrote none, in the form of 1. */
const VERSION = 1

/** Null if a newer Latchkey wrote it, whose form may differ. */
export function inForm<Form>(text: string): Form | null {
  const { version = VERSION, ...form } = JSON.parse(text) as { readonly version?: number }
  return version === VERSION ? (form as Form) : null
}

export const textOf = (form: object): string => JSON.stringify({ version: VERSION, ...form })

/** Null if there is no unfinished job; `newer` if a newer Latchkey began it. */
export async function readJob(db: Db): Promise<StoredJob | 'newer' | null> {
  const stored = await getSetting(db, JOB)
  return stored === null ? null : (inForm<StoredJob>(stored) ?? 'newer')
}

/** @throws {LatchkeyError} `rebuild_running` if a newer Latchkey began the unfinished job */
export async function loadJob(db: Db): Promise<StoredJob | null> {
  const job = await readJob(db)
  if (job === 'newer') throw ofNewer()
  return job
}

export function ofNewer(): LatchkeyError {
  const message =
    'A newer Latchkey began a rebuild or replay here: let that version finish it (`latchkey rebuild`).'
  return new LatchkeyError('rebuild_running', message)
}

/** @throws {LatchkeyError} `rebuild_running` */
export async function assertNotMoving(db: Db): Promise<void> {
  if ((await loadJob(db))?.isMoving) throw notMoved()
}

/** The error for what must wait until all sources are moved to the policy in force. */
export function notMoved(): LatchkeyError {
  const message =
    'Not every source has been moved to the policy in force yet: `latchkey policy apply` continues that.'
  return new LatchkeyError('rebuild_running', message)
}

export function saveJob(trx: Tx, job: StoredJob): Promise<void> {
  return setSetting(trx, JOB, textOf(job))
}

export async function loadJobParts(db: Db): Promise<readonly JobPart[]> {
  return (await loadSettingsUnder(db, PART)).flatMap((part) => inForm<JobPart>(part) ?? [])
}

/** @param number not yet used by a part of this job */
export function saveJobPart(trx: Tx, number: number, part: JobPart): Promise<void> {
  return setSetting(trx, `${PART}${number}`, textOf(part))
}

/** Deletes the job, finished or not, with all its parts. */
export async function clearJob(trx: Tx): Promise<void> {
  await sql`delete from settings where key = ${JOB} or key like ${`${PART}%`}`.execute(trx)
}

/** Followed by the id of a job: what is known of it, for every instance and after a restart. */
const RECORD = 'job.'
/** The id of the job that is to stop. */
const STOPPING = 'stopping'

/** Null if there is none of this id. */
export const loadJobRecord = (db: Db, id: string): Promise<string | null> => getSetting(db, `${RECORD}${id}`)

export const loadJobRecords = (db: Db): Promise<readonly string[]> => loadSettingsUnder(db, RECORD)

async function loadSettingsUnder(db: Db, prefix: string): Promise<readonly string[]> {
  const rows = await db.selectFrom('settings').select('value').where('key', 'like', `${prefix}%`).execute()
  return rows.map(({ value }) => value)
}

/** @returns whether somebody has asked for it to stop, at any instance */
export async function saveJobRecord(
  trx: Tx,
  { id, record }: { readonly id: string; readonly record: string },
): Promise<boolean> {
  await setSetting(trx, `${RECORD}${id}`, record)
  return (await getSetting(trx, STOPPING)) === id
}

export const stopJob = (trx: Tx, id: string): Promise<void> => setSetting(trx, STOPPING, id)

/** Deletes the record of this job, or of all: a dry run names accounts, which may be of somebody who is erased. */
export async function forgetJobRecords(trx: Tx, id = '%'): Promise<void> {
  await trx.deleteFrom('settings').where('key', 'like', `${RECORD}${id}`).execute()
}

/** A stored event: its normalised form, its disposition, and the columns that filters need. */
export type GroupRow = EventGlance &
  Pick<Selectable<EventsTable>, 'event_id' | 'reason' | 'source_kind' | 'source_id' | 'normalized'>

const SELECT_GROUP_ROWS = sql<GroupRow>`
  select seq, environment, event_id, endpoint, received_at, disposition, reason, type, customer_id, source_kind,
    source_id, normalized from events where`
const selectBySeq = bulkLookup(['seq'], SELECT_GROUP_ROWS)

/** In the order of arrival. */
export async function loadGroupRows(db: Db, seqs: readonly number[]): Promise<readonly GroupRow[]> {
  const keys = seqs.map((seq) => [seq])
  return (await selectBySeq(db, keys)).sort((a, b) => a.seq - b.seq)
}

/** The next events, in the order of arrival. */
export async function loadGroupRowsBeyond(db: Db, beyond: number, end: number, limit: number) {
  const { rows } = await sql<GroupRow>`
    ${SELECT_GROUP_ROWS} seq > ${beyond} and seq <= ${end} order by seq limit ${limit}`.execute(db)
  return rows
}

/** The numbers of the changes by hand to these customers. */
export const loadSeqsByHand = lookupAs(
  'customer_id',
  // SQLite uses the index of these few events only for exactly this text.
  sql<{ seq: number }>`select seq from events where type like 'manual.%' and`,
  (rows): readonly number[] => rows.map(({ seq }) => seq),
)

type PlaceColumns = Pick<EventsTable, 'source_kind' | 'source_id'>

/** The stored source of an event. */
export function placeOf({ source_kind: kind, source_id: id }: PlaceColumns): SourceKey | null {
  return kind === null || id === null ? null : { kind, id }
}

/** A source's key, and the columns to find its events by. */
export type SourceHistory = SourceKey & Pick<Selectable<SourcesTable>, 'seq' | 'environment' | 'history'>

/** The next sources, by number; a damaged row may have any number. */
export async function loadHistories(db: Db, after: number | undefined, limit: number) {
  const { rows } = await sql<SourceHistory>`
    select seq, environment, kind, source_id as id, history from sources
    where seq > ${after ?? Number.MIN_SAFE_INTEGER} order by seq limit ${limit}`.execute(db)
  return rows
}

/** A body has up to a mebibyte, and only this many are in memory at a time. */
const BODIES_AT_ONCE = 16

export type ReplayedEvent = Omit<Selectable<EventsTable>, 'body'>

/** Stored events one by one with their bytes, in the order of arrival. */
export async function* loadBodies(db: Db, seqs: readonly number[]): AsyncGenerator<Selectable<EventsTable>> {
  for (let i = 0; i < seqs.length; i += BODIES_AT_ONCE) {
    const some = seqs.slice(i, i + BODIES_AT_ONCE)
    yield* await db.selectFrom('events').selectAll().where('seq', 'in', some).orderBy('seq').execute()
  }
}

/** Whether the stored row matches this reading by the current program. */
export function hasSameForm(row: ReplayedEvent, reading: EventReading): boolean {
  return Object.entries(formColumns(reading)).every(
    ([name, value]) => row[name as keyof ReplayedEvent] === value,
  )
}

export interface EventToSave {
  readonly row: Pick<GroupRow, 'seq' | 'event_id'>
  readonly reading: EventReading
}

const updateForms = updateOf(formColumns)

/** Writes the sources and dispositions of events. Each row at most once. */
export const savePlaces = updateOf(placeColumns)

function updateOf(columnsOf: (reading: EventReading) => Readonly<Record<string, Row[number]>>) {
  let names: readonly string[] = []
  const update = statementAbout(({ values, from }) => {
    const set = sql.join(names.map((name, i) => sql`${sql.ref(name)} = ${values[i]}`))
    return sql`update events set ${set} ${from} where seq = ${values[names.length]}`
  })
  return async (trx: Tx, events: readonly EventToSave[]): Promise<void> => {
    const rows = events.map(({ row, reading }) => [columnsOf(reading), row.seq] as const)
    names = Object.keys(rows[0]?.[0] ?? {})
    const values = rows.map(([columns, seq]) => [...Object.values(columns), seq])
    await update(trx, values)
  }
}

const renameConflicts = statementAbout(
  ({ values: [nextId, environment, id], from }) => sql`
    update event_conflicts set event_id = ${nextId} ${from} where environment = ${environment} and event_id = ${id}`,
)

/**
 * Writes the columns that follow from the bodies. Each row at most once; no id may be another event's. Other bodies
 * under an id move with it.
 */
export async function saveForms(trx: Tx, environment: Environment, events: readonly EventToSave[]) {
  await updateForms(trx, events)
  const renamed = events.filter(({ row, reading }) => row.event_id !== reading.eventId)
  const names = renamed.map(({ row, reading }) => [reading.eventId, environment, row.event_id])
  await renameConflicts(trx, names)
}
