import type { Kysely } from 'kysely'
import type { Config } from '../config/types.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { openDatabase } from '../store/dialect.js'
import type { Database } from '../store/schema.js'

/**
 * Reads the configured database file itself, beside a running daemon or with none.
 * @throws {LatchkeyError} `store_missing`; `store_unavailable` where the file is there and no answer comes of it
 */
export async function readStore<T>(
  { database: { file } }: Config,
  read: (db: Kysely<Database>) => Promise<T>,
): Promise<T> {
  const db = openDatabase(file, { readOnly: true })
  try {
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
