import Sqlite from 'better-sqlite3'
import { LatchkeyError } from '../../errors.js'
import { watchPlace } from './place.js'
import { ensurePrivateFile } from './private-file.js'

/** Long enough for two that start at the same moment to settle who is first. */
const LOCK_TIMEOUT_MS = 250

/** Keeps the open locks from the garbage collector, which closes what nobody refers to: a lock ends by its release alone. */
const held = new Set<Sqlite.Database>()

export interface StoreLock {
  /** False once the lock file was taken away, so that another daemon could take the lock too. */
  isHeld(): boolean
  release(): void
}

/**
 * Makes this process the only one that serves the database, until released.
 *
 * The lock is the operating system's, held through a side file (`<file>.lock`): it ends with the process,
 * however that ends. It stops another daemon, not a reader.
 *
 * @throws {LatchkeyError} `store_in_use`
 */
export function lockStore(file: string): StoreLock {
  const lockFile = `${file}.lock`
  ensurePrivateFile(lockFile)
  const lock = new Sqlite(lockFile, { timeout: LOCK_TIMEOUT_MS })
  try {
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if (!(error instanceof Sqlite.SqliteError && error.code === 'SQLITE_BUSY')) throw error
    throw new LatchkeyError('store_in_use', inUse(file), { cause: error })
  }
  held.add(lock)
  const release = (): void => {
    held.delete(lock)
    lock.close()
  }
  return { isHeld: watchPlace(lockFile), release }
}

/** Whoever has the lock does not say what it is: a daemon stays, a command ends by itself. */
function inUse(file: string): string {
  return (
    `Another process is using ${file}. If it is a daemon, stop it first, or go through it with --url where the command ` +
    'takes that; if it is another command, wait until it has ended.'
  )
}
