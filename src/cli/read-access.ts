import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { createAccessReader } from '../store/access-reader.js'
import { openDatabase } from '../store/dialect.js'
import { pendingMigrations } from '../store/migrate.js'
import type { ReadAccess } from './check.js'

/**
 * Reads the database file itself, beside a running daemon or with none.
 * Throws `store_missing`, `schema_too_new`, or `store_unavailable` where no answer comes of the file.
 */
export function createFileReadAccess(now: () => number): ReadAccess {
  return async ({ database: { file } }, query) => {
    const db = openDatabase(file, { readOnly: true })
    try {
      await pendingMigrations(db)
      return await createAccessReader(db, now)(query)
    } catch (error) {
      if (isLatchkeyError(error)) throw error
      const reason = error instanceof Error ? error.message : String(error)
      throw new LatchkeyError('store_unavailable', `the database ${file} can't be read: ${reason}`, {
        cause: error,
      })
    } finally {
      await db.destroy()
    }
  }
}
