import type { Kysely, Transaction } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import type { Environment } from '../provider/event.js'
import type { EventFilter } from './event-walk.js'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'

const JOB = 'recompute'
/** Followed by a number: a part for each time that the job was saved, so that no part is written twice. */
const PART = 'recompute.'

export const NOTHING_READ = {
  read: 0,
  /** Rows that the replay changed. */
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

/** The results of a replay's reading. */
export type ReplayCounts = Readonly<typeof NOTHING_READ>

/** The scope of a job. */
export interface JobScope {
  /** Which events; of a list of environments, all. */
  readonly scope: EventFilter | readonly Environment[]
  /** The environment of every configured endpoint, by name, if events are read again; null: they are not. */
  readonly endpoints: Readonly<Record<string, Environment>> | null
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

/** Null if there is no unfinished job. */
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

/** @param number not yet used by a part of this job */
export function saveJobPart(trx: Transaction<Database>, number: number, part: JobPart): Promise<void> {
  return setSetting(trx, `${PART}${number}`, JSON.stringify(part))
}

/** Deletes the job, finished or not, with all its parts. */
export async function clearJob(trx: Transaction<Database>): Promise<void> {
  await trx
    .deleteFrom('settings')
    .where((eb) => eb.or([eb('key', '=', JOB), eb('key', 'like', `${PART}%`)]))
    .execute()
}
