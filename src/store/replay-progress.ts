import type { Kysely, Transaction } from 'kysely'
import type { EventFilter } from '../entitlements/stored-event.js'
import type { Environment } from '../provider/event.js'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'

const SETTING = 'replay'

/** What became of the stored events that a replay has read again. */
export interface ReplayCounts {
  readonly read: number
  /** Rows that say otherwise since. */
  readonly changed: number
  /** Of these, the ones that could not be used before. */
  readonly recovered: number
  /** Read again, and not to be used. */
  readonly quarantined: number
  /** Left as they are: another event has the id that they have by today's reading. */
  readonly duplicates: number
  /** Left as they are: their endpoint receives for another environment by now. */
  readonly skipped: number
  /** Folded as they stand: their body was removed, so that they can't be read again. */
  readonly notReplayable: number
  /** Folded as they stand: their body is not the one that came, since something has altered it in the database. */
  readonly altered: number
}

/** What a replay is about: two that are alike do the same. */
export interface ReplayMeaning {
  readonly filter: EventFilter
  /** The environment of every configured endpoint, by its name. */
  readonly endpoints: Readonly<Record<string, Environment>>
}

/** A replay under way, or interrupted. */
export interface ReplayProgress extends ReplayMeaning {
  readonly normalizerVersion: number
  /** The `seq` of the newest event that stood when it began: what comes later is read by today's program anyway. */
  readonly newest: number
  /** The `seq` up to which events have been read again; 0: none. */
  readonly reached: number
  readonly counts: ReplayCounts
  /** Where the change log stood when it began. */
  readonly changesAfter: number
  /** Environments in which something known was taken back that another event may tell: there, all tell again. */
  readonly doubted: readonly Environment[]
  /** The `seq` up to which the events of the first of these have told again. */
  readonly toldUpTo: number
}

/** Null where no replay is under way. */
export async function loadReplayProgress(db: Kysely<Database>): Promise<ReplayProgress | null> {
  const stored = await getSetting(db, SETTING)
  return stored === null ? null : (JSON.parse(stored) as ReplayProgress)
}

export function saveReplayProgress(trx: Transaction<Database>, progress: ReplayProgress): Promise<void> {
  return setSetting(trx, SETTING, JSON.stringify(progress))
}

export async function clearReplayProgress(trx: Transaction<Database>): Promise<void> {
  await trx.deleteFrom('settings').where('key', '=', SETTING).execute()
}
