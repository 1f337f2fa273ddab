import { existsSync, linkSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { hasStrayLog } from '../store/sqlite/connection.js'
import {
  assertIntact,
  assertWhole,
  copyDatabase,
  diskFailed,
  isDiskFailure,
  LOG_SUFFIXES,
  makeOneFile,
  type OnProgress,
} from '../store/sqlite/copy.js'
import {
  ensurePrivateFile,
  leadsTo,
  lockStore,
  partNameFor,
  removePartOf,
  sync,
} from '../store/sqlite/file.js'
import { type MadeReady, makeReady } from '../store/sqlite/restored.js'
import { timeInName } from './backup-folder.js'

export interface RestoreOptions {
  /** Epoch milliseconds: part of the name of the replaced database. */
  readonly now: number
  readonly onProgress?: OnProgress
  /** Whether a backup is restored in which bodies are not what was received. */
  readonly acceptAltered?: boolean
  /** Erases everyone on the list beside `file` from the migrated copy; returns how many it still had. */
  readonly eraseAgain: (part: string, file: string) => Promise<number>
}

export interface Restored extends MadeReady {
  readonly file: string
  /** How many people were erased after the backup, and again now. */
  readonly erasedAgain: number
  /** The replaced database; null: there was none. */
  readonly keptAs: string | null
}

/**
 * Replaces the store with a copy of a backup, and keeps the old one beside it. The copy is prepared under another name
 * and moved into place in one step: until then the old store is unchanged.
 *
 * @throws {LatchkeyError} `backup_missing`, `backup_failed`, `backup_damaged`, `not_a_backup`, `schema_too_new`,
 * `store_in_use`; `usage` if the backup is the database
 */
export async function restore(
  path: string,
  backup: string,
  { now, onProgress, acceptAltered = false, eraseAgain }: RestoreOptions,
): Promise<Restored> {
  assertFilled(backup)
  const file = existsSync(path) ? realpathSync(path) : path
  if (leadsTo(file, backup)) {
    throw new LatchkeyError('usage', `${backup} is the database itself: name a backup of it.`)
  }
  const lock = lockStore(file)
  const part = partNameFor(file)
  try {
    removePartOf(file)
    ensurePrivateFile(part)
    await copyIntact(backup, part, onProgress)
    const ready = await makeReady(part, backup, file, { now, acceptAltered })
    const erasedAgain = await eraseAgain(part, file)
    makeOneFile(part)
    sync(part)
    const keptAs = replaceStore(file, part, `${file}.before-restore-${timeInName(now)}`)
    return { ...ready, file, keptAs, erasedAgain }
  } catch (error) {
    throw isDiskFailure(error) ? diskFailed(`${part} can't be written`, error) : error
  } finally {
    removePartOf(file)
    lock.release()
  }
}

function assertFilled(backup: string): void {
  // Unlike `existsSync`, it distinguishes an unreachable backup from a missing one.
  const found = statSync(backup, { throwIfNoEntry: false })
  if (found === undefined) throw new LatchkeyError('backup_missing', `There is no backup at ${backup}.`)
  if (found.isDirectory())
    throw new LatchkeyError('not_a_backup', `${backup} is a folder: name a file in it.`)
  if (!found.isFile()) throw new LatchkeyError('not_a_backup', `${backup} is not a file.`)
  if (found.size === 0) throw new LatchkeyError('not_a_backup', `${backup} is empty: take another backup.`)
}

async function copyIntact(backup: string, part: string, onProgress?: OnProgress): Promise<void> {
  try {
    assertWhole(backup, backup)
    await copyDatabase(backup, part, onProgress)
    assertIntact(part, backup)
  } catch (error) {
    if (!isLatchkeyError(error, 'backup_damaged')) throw error
    throw new LatchkeyError('backup_damaged', `${error.message} Choose another backup.`, {
      cause: error.cause,
    })
  }
}

/**
 * Replaces the database at `file` with another whole one, and keeps the old one at `keptAs`. At every moment there is
 * a database at `file`, and never beside another's log.
 *
 * If interrupted, the old database has two names, so that no daemon opens it: the next restore replaces it.
 *
 * @returns the path of the old one; null if there was none
 */
function replaceStore(file: string, whole: string, keptAs: string): string | null {
  const existed = existsSync(file)
  if (existed) {
    foldLog(file)
    linkSync(file, keptAs)
  }
  for (const log of LOG_SUFFIXES)
    if (existsSync(`${file}${log}`)) renameSync(`${file}${log}`, `${keptAs}${log}`)
  rmSync(`${file}-shm`, { force: true })
  // The old log must be deleted on disk before another database takes its place.
  sync(dirname(file))
  renameSync(whole, file)
  sync(dirname(file))
  return existed ? keptAs : null
}

/** Writes the log into the old database, which is then one file. If it is unreadable, its log is kept as it is. */
function foldLog(file: string): void {
  if (hasStrayLog(file)) return
  try {
    makeOneFile(file)
  } catch {
    // Damage to the old database must not prevent the restore.
  }
}
