import { existsSync } from 'node:fs'
import Sqlite from 'better-sqlite3'

/**
 * Whether a process holds the lock of the store: a daemon, or a command that works on the database itself.
 * Takes no lock that would keep another from starting.
 */
export function isStoreServed(file: string): boolean {
  const lockFile = `${file}.lock`
  if (!existsSync(lockFile)) return false
  const lock = new Sqlite(lockFile, { readonly: true, timeout: 0 })
  try {
    lock.prepare('select count(*) from sqlite_schema').get()
    return false
  } catch (error) {
    if (error instanceof Sqlite.SqliteError && error.code === 'SQLITE_BUSY') return true
    throw error
  } finally {
    lock.close()
  }
}
