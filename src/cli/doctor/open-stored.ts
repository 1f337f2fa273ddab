import { existsSync } from 'node:fs'
import type { Kysely } from 'kysely'
import type { Config } from '../../config/types.js'
import { isLatchkeyError } from '../../errors.js'
import type { Database } from '../../store/schema.js'
import { hasStrayLog, isStoreBroken, isStoreBusy } from '../../store/sqlite/connection.js'
import { openDatabase } from '../../store/sqlite/dialect.js'
import { assertDatabase } from '../assert-database.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'
import { newestBackup } from './check-backup.js'
import { type Finding, fail } from './finding.js'

/** The database, to be looked at; or why it can't be. */
export function openStored(config: Config, now: number): Kysely<Database> | Finding {
  const { file } = config.database
  try {
    assertDatabase(file, 'read')
    return openDatabase(file, { readOnly: true })
  } catch (error) {
    if (isLatchkeyError(error, 'store_missing')) return missing(config, now)
    if (isLatchkeyError(error, 'store_unavailable') && isSystemRefusal(error.cause)) {
      const todo = isOfAnotherUser(error.cause) ? AS_ITS_USER : 'check database.url'
      return fail('database', `${file} can’t be read, ${refusalText(error.cause)}`, todo)
    }
    return unreadable('database', error)
  }
}

/** Beside a log no start makes a new one. */
function missing(config: Config, now: number): Finding {
  const { file } = config.database
  if (!existsSync(`${file}-wal`) || !hasStrayLog(file)) {
    const todo = 'check database.url; where there never was one, `latchkey serve` makes it'
    return fail('database', `there is none at ${file}`, todo)
  }
  const newest = newestBackup(config, now)
  const backup = newest === null ? '`latchkey restore`' : `the newest: \`latchkey restore ${newest}\``
  const todo = `put the database back, or a backup in its place (${backup}); to begin anew, move the log away`
  return fail('database', `${file} is missing or empty, though its log is there`, todo)
}

const RESTORE = 'stop the daemon, and put a backup in its place: `latchkey restore`'

/** A database that can't be read is something found; anything else is a bug. */
export function unreadable(what: string, error: unknown): Finding {
  if (isLatchkeyError(error, 'store_unavailable')) return fail(what, error.message, RESTORE)
  if (!(error instanceof Error)) throw error
  const detail = `the database can’t be read: ${error.message}`
  if (isStoreBroken(error)) return fail(what, detail, RESTORE)
  if (isStoreBusy(error)) return fail(what, detail, 'look at its disk, and at who owns its files')
  throw error
}
