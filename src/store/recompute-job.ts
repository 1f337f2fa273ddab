import type { Kysely, Transaction } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import type { Environment } from '../provider/event.js'
import type { EventFilter } from './event-walk.js'
import type { Database } from './schema.js'
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
