import { existsSync } from 'node:fs'
import type { Kysely } from 'kysely'
import { LatchkeyError } from '../errors.js'
import { backUpBeforeMigration } from './back-up-before-migration.js'
import { migrate } from './migrate.js'
import type { Database } from './schema.js'
import { openDatabase } from './sqlite/dialect.js'
import { removeLeftBehind } from './sqlite/left-behind.js'
import { lockStore } from './sqlite/lock.js'
import { placeOf } from './sqlite/place.js'

export interface BroughtUpToDate {
  /** The steps of the schema that ran, oldest first; none where it was up to date. */
  readonly steps: readonly string[]
  /** The copy of the database as it was before; null: there was nothing to keep. */
  readonly backup: string | null
}

/**
 * Keeps a copy beside the database, and runs the steps that its schema lacks: all of them or none.
 * @throws {LatchkeyError} `schema_too_new`
 */
export async function bringUpToDate(db: Kysely<Database>, file: string): Promise<BroughtUpToDate> {
  const backup = await backUpBeforeMigration(db, file)
  return { steps: await migrate(db), backup }
}

/**
 * The same for a database that nobody serves.
 * @throws {LatchkeyError} `store_missing`, `store_in_use`, `schema_too_new`
 */
export async function bringFileUpToDate(path: string): Promise<BroughtUpToDate> {
  if (!existsSync(path)) throw new LatchkeyError('store_missing', `There is no database at ${path}.`)
  const file = placeOf(path)
  const lock = lockStore(file)
  try {
    removeLeftBehind(file)
    const db = openDatabase(file, { readOnly: false })
    try {
      return await bringUpToDate(db, file)
    } finally {
      await db.destroy()
    }
  } finally {
    lock.release()
  }
}
