import type { Kysely } from 'kysely'
import type { Config } from '../config/types.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { pendingMigrations } from '../store/migrate.js'
import type { Database } from '../store/schema.js'
import { openDatabase } from '../store/sqlite/dialect.js'
import { assertDatabase } from './assert-database.js'

/**
 * Reads the configured database file itself, beside a running daemon or with none.
 * @throws {LatchkeyError} `store_missing`; `schema_too_new`; `store_unavailable` where no answer comes of the file
 */
export async function readStore<T>(
  { database: { file } }: Config,
  read: (db: Kysely<Database>) => Promise<T>,
): Promise<T> {
  assertDatabase(file, 'read')
  const db = openDatabase(file, { readOnly: true })
  try {
    await pendingMigrations(db)
    return await read(db)
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
