import { existsSync, realpathSync, statSync } from 'node:fs'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { startChangeLogEpoch } from './change-cursor.js'
import {
  assertIntact,
  copyDatabase,
  diskFailed,
  isDiskFailure,
  makeOneFile,
  type OnProgress,
} from './database-file.js'
import { openDatabase } from './dialect.js'
import { removeLeftBehind } from './left-behind.js'
import { lockStore } from './lock.js'
import { takeOverMemberships } from './membership-take-over.js'
import { forgetMessages } from './message-writes.js'
import { isLatchkeySchema, migrate } from './migrate.js'
import { isSameFile } from './own-files.js'
import { partNameFor, removePartsOf, sync } from './part-file.js'
import { ensurePrivateFile } from './private-file.js'
import { keptBefore, replaceStore } from './replace-store.js'
import { setSyncPaused } from './sync-settings.js'
import { timeInName } from './time-in-name.js'

export interface RestoreOptions {
  /** Epoch milliseconds: names what is kept. */
  readonly now: number
  readonly onProgress?: OnProgress
  /** Erases from the copy, whose schema is up to date, whom the list beside `file` has; answers how many it had back. */
  readonly eraseAgain: (part: string, file: string) => Promise<number>
}

export interface Restored {
  readonly file: string
  /** How many people had been erased since the backup, and are so again. */
  readonly erasedAgain: number
  /** Where the database is that stood there before; null: there was none. */
  readonly keptAs: string | null
  /** The schema steps that the backup lacked. */
  readonly migrated: readonly string[]
  /**
   * How many memberships of roles and groups were taken over from that database; null: there was none, or it could not
   * be read to its end. What is not taken over counts as let in by staff.
   */
  readonly membershipsKept: number | null
}

/**
 * Puts a copy of a backup in the place of the store, and keeps what was there beside it. The copy is made ready before
 * anybody can see it, and takes the place in one step: until then the old store stands whole.
 *
 * @throws {LatchkeyError} `backup_missing`, `backup_failed`, `backup_damaged`, `not_a_backup`, `schema_too_new`,
 * `store_in_use`; `usage` where the backup is the database
 */
export async function restore(
  path: string,
  backup: string,
  { now, onProgress, eraseAgain }: RestoreOptions,
): Promise<Restored> {
  assertFilled(backup)
  const file = existsSync(path) ? realpathSync(path) : path
  if (isSameFile(file, backup)) {
    throw new LatchkeyError('usage', `${backup} is the database itself: name a backup of it.`)
  }
  const lock = lockStore(file)
  const part = partNameFor(file)
  try {
    removePartsOf(file)
    ensurePrivateFile(part)
    await copyIntact(backup, part, onProgress)
    const migrated = await makeReady(part, backup, now)
    const before = existsSync(file) ? (keptBefore(file) ?? file) : null
    const membershipsKept = before === null ? null : await keepMemberships(part, before)
    const erasedAgain = await eraseAgain(part, file)
    makeOneFile(part)
    sync(part)
    const keptAs = replaceStore(file, part, `${file}.before-restore-${timeInName(now)}`)
    // Not before: what was left behind may be the very backup.
    removeLeftBehind(file)
    return { file, keptAs, migrated, membershipsKept, erasedAgain }
  } catch (error) {
    throw isDiskFailure(error) ? diskFailed(`${part} can't be written`, error) : error
  } finally {
    removePartsOf(file)
    lock.release()
  }
}

function assertFilled(backup: string): void {
  // Unlike `existsSync`, it tells a backup that may not be reached from none.
  const found = statSync(backup, { throwIfNoEntry: false })
  if (found === undefined) throw new LatchkeyError('backup_missing', `There is no backup at ${backup}.`)
  if (found.isDirectory())
    throw new LatchkeyError('not_a_backup', `${backup} is a folder: name a file in it.`)
  if (!found.isFile()) throw new LatchkeyError('not_a_backup', `${backup} is no file.`)
  if (found.size === 0) throw new LatchkeyError('not_a_backup', `${backup} is empty: take another backup.`)
}

async function copyIntact(backup: string, part: string, onProgress?: OnProgress): Promise<void> {
  try {
    await copyDatabase(backup, part, onProgress)
    assertIntact(part, backup)
  } catch (error) {
    if (!isLatchkeyError(error, 'backup_damaged')) throw error
    throw new LatchkeyError('backup_damaged', `${error.message} Take another backup.`, { cause: error.cause })
  }
}

/** Everything in which any restored store must differ from its backup is done here. */
async function makeReady(part: string, backup: string, now: number): Promise<readonly string[]> {
  const db = openDatabase(part, { readOnly: false })
  let migrated: readonly string[]
  try {
    if (!(await isLatchkeySchema(db))) {
      throw new LatchkeyError('not_a_backup', `${backup} is a database of something else.`)
    }
    migrated = await migrate(db)
    await db.transaction().execute(async (trx) => {
      await startChangeLogEpoch(trx)
      // The store may be older than what is given on the platforms: nothing is taken back before somebody has looked.
      await setSyncPaused(trx, true, now)
      // They may have been told since, and newer ones after them, which they would contradict.
      await forgetMessages(trx)
    })
  } finally {
    await db.destroy()
  }
  return migrated
}

/** What is known of the platforms outlasts the database, too: the backup is older than it. */
async function keepMemberships(part: string, before: string): Promise<number | null> {
  const db = openDatabase(part, { readOnly: false })
  try {
    return await takeOverMemberships(db, before)
  } finally {
    await db.destroy()
  }
}
