import { LatchkeyError } from '../errors.js'
import { createAccessReader } from '../store/access-reader.js'
import { openDatabase } from '../store/dialect.js'
import type { ReadAccess } from './check.js'

/**
 * Reads the database file itself, beside a running daemon or with none.
 * Throws `store_missing`, or `store_unavailable` where the file is there and no answer comes of it.
 */
export function createFileReadAccess(now: () => number): ReadAccess {
  return async ({ database: { file } }, query) => {
    const db = openDatabase(file, { readOnly: true })
    try {
      return await createAccessReader(db, now)(query)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new LatchkeyError('store_unavailable', `the database ${file} can't be read: ${reason}`, {
        cause: error,
      })
    } finally {
      await db.destroy()
    }
  }
}
