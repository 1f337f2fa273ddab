import { createAccessReader } from '../store/access-reader.js'
import { openDatabase } from '../store/dialect.js'
import { pendingMigrations } from '../store/migrate.js'
import type { ReadAccess } from './check.js'

/** Reads the database file itself, beside a running daemon or with none. Throws `store_missing`, `schema_too_new`. */
export function createFileReadAccess(now: () => number): ReadAccess {
  return async ({ database }, query) => {
    const db = openDatabase(database.file, { readOnly: true })
    try {
      await pendingMigrations(db)
      return await createAccessReader(db, now)(query)
    } finally {
      await db.destroy()
    }
  }
}
