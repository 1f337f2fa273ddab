import type { AccessAnswer } from '../entitlements/answer.js'
import { type AccessQuery, createAccessReader } from './access-reader.js'
import { openDatabase } from './dialect.js'
import { pendingMigrations } from './migrate.js'

/**
 * Answers one question from the database file itself: beside a running daemon, or with none.
 * @throws {LatchkeyError} `store_missing`, `schema_too_new`
 */
export async function readStoredAccess(
  file: string,
  query: AccessQuery,
  clock: () => number,
): Promise<AccessAnswer> {
  const db = openDatabase(file, { readOnly: true })
  try {
    await pendingMigrations(db)
    return await createAccessReader(db, clock)(query)
  } finally {
    await db.destroy()
  }
}
