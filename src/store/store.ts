import { existsSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import { settleChangeLogEpoch } from './changes.js'
import { bringUpToDate } from './migrate.js'
import { settlePolicy } from './policy.js'
import type { Database } from './schema.js'
import { damaged, isStoreBroken, KEEP_UPPER_PAGES } from './sqlite/connection.js'
import { openDatabase } from './sqlite/dialect.js'
import { lockStore, placeOf, removeLeftBehind, watchFiles, watchPlace } from './sqlite/file.js'

/** Whatever writes through a connection of its own, in this thread or another. */
export interface Closable {
  close(): Promise<void>
}

export interface Store<Writer extends Closable> {
  /** Where the database is, whatever links lead there. */
  readonly file: string
  /** There was none. */
  readonly isNew: boolean
  /** The one that writes. */
  readonly writer: Writer
  /** A connection of its own: never waits for a write, and sees every commit. */
  readonly reader: Kysely<Database>
  /**
   * That the open files are those at their paths: what is written to others nobody will find again.
   * @throws {LatchkeyError} `store_replaced`
   */
  assertInPlace(): void
  close(): Promise<void>
}

/**
 * Opens the database for the one process that serves it, removes what killed ones left beside it, brings its schema up
 * to date, settles the policy, and then starts what writes.
 * @throws {LatchkeyError} `store_in_use`, `schema_too_new`, `store_unavailable`
 */
export async function openStore<Writer extends Closable>(
  path: string,
  configured: Policy,
  openWriter: (file: string) => Writer,
): Promise<Store<Writer>> {
  const file = placeOf(path)
  const lock = lockStore(file)
  const opened: (() => Promise<void>)[] = []
  const close = async (): Promise<void> => {
    // The writer last: only then can it empty the write-ahead log into the database.
    for (const closeOne of opened.reverse()) await closeOne()
    lock.release()
  }
  try {
    removeLeftBehind(file)
    const isNew = !existsSync(file)
    await prepare(file, configured)
    const writer = openWriter(file)
    opened.push(writer.close)
    const reader = openDatabase(file, { readOnly: true })
    opened.push(() => reader.destroy())
    await sql`pragma ${sql.raw(KEEP_UPPER_PAGES)}`.execute(reader)
    const isInPlace = watchPlace(file)
    const isLogInPlace = watchFiles([`${file}-wal`, `${file}-shm`])
    return {
      file,
      isNew,
      writer,
      reader,
      assertInPlace: () => {
        if (isInPlace() && isLogInPlace() && lock.isHeld()) return
        throw new LatchkeyError(
          'store_replaced',
          `${file}, its log or its lock was removed, replaced or emptied.`,
        )
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function prepare(file: string, configured: Policy): Promise<void> {
  const db = openDatabase(file, { readOnly: false })
  try {
    await bringUpToDate(db, file)
    await settlePolicy(db, configured)
    await settleChangeLogEpoch(db)
  } catch (error) {
    throw isStoreBroken(error) ? damaged(file, error) : error
  } finally {
    await db.destroy()
  }
}
