import { existsSync } from 'node:fs'
import type { Config } from '../config/schema.js'
import { isLatchkeyError } from '../errors.js'
import { openToRead } from '../operations/assert-database.js'
import { isOfPostgres, isStoreBroken, isStoreBusy } from '../store/engine.js'
import { compareBodies } from '../store/event-questions.js'
import { pendingMigrations } from '../store/migrate.js'
import type { Db } from '../store/schema.js'
import { hasStrayLog } from '../store/sqlite/connection.js'
import { findDamage } from '../store/sqlite/dialect.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'
import { counted, type Finding, fail, ok, warn } from './finding.js'
import { newestBackup } from './machine.js'

/** The opened database; or the finding why it can't be opened. */
export async function openStored(config: Config, now: number): Promise<Db | Finding> {
  const { file } = config.database
  try {
    return await openToRead(config.database)
  } catch (error) {
    if (isLatchkeyError(error, 'store_missing')) return missing(config, now)
    if (isLatchkeyError(error, 'store_unavailable') && isSystemRefusal(error.cause)) {
      const todo = isOfAnotherUser(error.cause) ? AS_ITS_USER : 'check database.url'
      return fail('database', `${file} can’t be read, ${refusalText(error.cause)}`, todo)
    }
    return unreadable('database', error)
  }
}

/** No start creates a new database beside a log. */
function missing(config: Config, now: number): Finding {
  const { file } = config.database
  if (!existsSync(`${file}-wal`) || !hasStrayLog(file)) {
    const todo = 'check database.url; if there never was one, `latchkey serve` creates it'
    return fail('database', `there is none at ${file}`, todo)
  }
  const newest = newestBackup(config, now)
  const backup = newest === null ? '`latchkey restore`' : `the newest: \`latchkey restore ${newest}\``
  const todo = `put the database back, or replace it with a backup (${backup}); to start over, move the log away`
  return fail('database', `${file} is missing or empty, but its write-ahead log is there`, todo)
}

const RESTORE = 'stop the daemon, and restore a backup: `latchkey restore`'

/** An unreadable database is a finding; any other error is a bug. */
export function unreadable(what: string, error: unknown): Finding {
  if (error instanceof Error && isOfPostgres(error)) {
    const detail = `the database can’t be read: ${(error.cause instanceof Error ? error.cause : error).message}`
    return fail(what, detail, 'check that the server is running, and check database.url')
  }
  if (isLatchkeyError(error, 'store_unavailable')) return fail(what, error.message, RESTORE)
  if (!(error instanceof Error)) throw error
  const detail = `the database can’t be read: ${error.message}`
  if (isStoreBroken(error)) return fail(what, detail, RESTORE)
  if (isStoreBusy(error)) return fail(what, detail, 'check its disk, and who owns its files')
  throw error
}

/** Whether this program and the database have the same schema. If not, nothing else can be read. */
export async function checkSchema(db: Db): Promise<Finding> {
  try {
    const pending = await pendingMigrations(db)
    if (pending.length === 0) return ok('schema', 'current')
    const todo = 'start the daemon, which updates it: `latchkey serve`'
    return warn('schema', `older by ${counted(pending.length, 'step')}, starting with ${pending[0]}`, todo)
  } catch (error) {
    if (!isLatchkeyError(error, 'schema_too_new')) throw error
    return fail(
      'schema',
      error.message.replace(/\.$/, ''),
      'install the version that wrote it, or a newer one',
    )
  }
}

/** Whether the server keeps what it has taken. */
export async function checkServer(db: Db): Promise<readonly Finding[]> {
  const { findWeaknesses } = await import('../store/postgres/store.js')
  const found = await findWeaknesses(db)
  if (found.length === 0) return [ok('database', 'keeps what it has committed')]
  return found.map((detail) => fail('database', detail, 'change the settings of the PostgreSQL server'))
}

/** Whether the file is intact. (PostgreSQL checks its pages as it reads them.) */
export async function checkIntegrity(db: Db, thorough: boolean): Promise<readonly Finding[]> {
  const faults = await findDamage(db, thorough)
  const [first] = faults
  if (first === undefined) return [ok('integrity', thorough ? 'sound, indexes included' : 'sound')]
  const detail = `damaged in at least ${counted(faults.length, 'place')}: ${first}`
  return [fail('integrity', detail, RESTORE)]
}

const MEND =
  'check the disk; to repair it, `latchkey events export`, `latchkey restore` an earlier backup, `latchkey import`'

/** Whether stored deliveries still match their hashes. Reads every body. */
export async function checkBodyHashes(db: Db): Promise<readonly Finding[]> {
  const { read, altered, first } = await compareBodies(db)
  if (altered === 0) return [ok('body hashes', `none altered, of ${read}`)]
  const detail = `${altered} of ${read} altered in the database, the first that of ${first}`
  return [fail('body hashes', detail, MEND)]
}
