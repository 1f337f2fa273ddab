import { existsSync, statSync } from 'node:fs'
import { sql } from 'kysely'
import type { NamedMigration } from '../../../migrations/column-types.js'
import { MIGRATIONS } from '../../../migrations/index.js'
import type { Policy } from '../../entitlements/policy.js'
import { LatchkeyError } from '../../errors.js'
import { ensureChangeLogEpoch } from '../changes.js'
import { guardedWriter, isStoreBroken, unavailable } from '../engine.js'
import { executedMigrations, migrate, pendingMigrations } from '../migrate.js'
import type { Db } from '../schema.js'
import { ensureConsoleSecret, ensurePolicy } from '../settings.js'
import { damaged, KEEP_FEW_PAGES, KEEP_UPPER_PAGES } from './connection.js'
import { backUp } from './copy.js'
import { openDatabase } from './dialect.js'
import { lockStore, orUnwritable, placeOf, removePartOf, watchFiles } from './file.js'

/**
 * Opens the database for the one process that serves it: removes the files of killed processes, brings its schema up
 * to date, settles the policy, and starts the writer, which has its own connection, in this thread or another.
 * @param onBroken called when the file or its disk can't be trusted any more
 * @throws {LatchkeyError} `store_in_use`, `schema_too_new`, `store_unavailable`
 */
export async function openStore<Writer extends { close(): Promise<void> }>(
  path: string,
  configured: Policy,
  openWriter: (file: string) => Writer,
  onBroken: (error: unknown) => void = () => {},
) {
  const file = placeOf(path)
  const lock = lockStore(file)
  const opened: (() => Promise<void>)[] = []
  const close = async (): Promise<void> => {
    // The writer last: only then can it empty the write-ahead log into the database.
    for (const closeOne of opened.reverse()) await closeOne()
    lock.release()
  }
  try {
    removePartOf(file)
    const isNew = !existsSync(file)
    await prepare(file, configured)
    const writer = openWriter(file)
    opened.push(writer.close)
    const openReader = () =>
      openDatabase(file, { readOnly: true }, (cause) => {
        if (isStoreBroken(cause)) onBroken(replaced() ?? cause)
        // A store that can't be read must never look like a customer without access.
        return unavailable('read', cause)
      })
    const reader = openReader()
    opened.push(() => reader.destroy())
    await sql`pragma ${sql.raw(KEEP_UPPER_PAGES)}`.execute(reader)
    const areInPlace = watchFiles([file, `${file}-wal`, `${file}-shm`, `${file}.lock`])
    /** Whether the open files are not those at their paths: nobody would find new data in them. */
    const replaced = (): LatchkeyError | null => {
      if (areInPlace() && statSync(file).size > 0) return null
      const harm = `${file}, its log or its lock was removed, replaced or emptied.`
      return new LatchkeyError('store_replaced', harm)
    }
    return {
      /** The path of the database, with links resolved. */
      file,
      bytes: async () => statSync(file).size,
      /** Whether the database is new. */
      isNew,
      /** Every call also throws `store_replaced`: once it has, nothing can be stored any more. */
      writer: guardedWriter(writer, onBroken, replaced),
      /** Never waits for a write, and sees every commit. If it can't read, it throws `store_unavailable`. */
      reader,
      /** Reads by another connection, for long work: it has little in memory, and leaves the memory of questions alone. */
      async readApart<T>(work: (db: Db) => Promise<T>): Promise<T> {
        const apart = openReader()
        try {
          await sql`pragma ${sql.raw(KEEP_FEW_PAGES)}`.execute(apart)
          return await work(apart)
        } finally {
          await apart.destroy()
        }
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
    await ensurePolicy(db, configured)
    await ensureChangeLogEpoch(db)
    await ensureConsoleSecret(db)
  } catch (error) {
    throw isStoreBroken(error) ? damaged(file, error) : orUnwritable(file, error)
  } finally {
    await db.destroy()
  }
}

/**
 * Copies the database to a file beside it (`<file>.before-<step>`), and runs the pending steps: all of them or none.
 * The older program can continue with that copy. Makes no copy (null) if nothing is pending, or if the database is new.
 * Returns the steps that ran, oldest first.
 * @throws {LatchkeyError} `schema_too_new`, and any failure to make the copy
 */
export async function bringUpToDate(
  db: Db,
  file: string,
  migrations: readonly NamedMigration[] = MIGRATIONS,
) {
  const [next] = await pendingMigrations(db, migrations)
  let backup: string | null = null
  if (next === undefined) return { steps: [], backup }
  if ((await executedMigrations(db)).length > 0) {
    // An earlier copy is from a failed attempt: the older program may have written since.
    backup = (await backUp(file, `${file}.before-${next}`, { overwrite: true })).file
  }
  return { steps: await migrate(db, migrations), backup }
}

/**
 * Rewrites a database that no daemon serves, without unused bytes; returns its size in bytes, before and after.
 * (Overwritten data is zeroed in place; but when rows move between pages, copies of them may stay in bytes that no row
 * uses: 2 of 750 words, as tried.)
 */
export async function compactFile(path: string) {
  const file = placeOf(path)
  const before = statSync(file).size
  await withStopped(file, (db) => sql`vacuum`.execute(db))
  return { file, before, after: statSync(file).size }
}

/**
 * Works on a database that no daemon serves.
 * @throws {LatchkeyError} `store_in_use`
 */
export async function withStopped<T>(path: string, work: (db: Db, file: string) => Promise<T>): Promise<T> {
  const file = placeOf(path)
  const lock = lockStore(file)
  try {
    removePartOf(file)
    const db = openDatabase(file, { readOnly: false })
    try {
      return await work(db, file)
    } finally {
      await db.destroy()
    }
  } finally {
    lock.release()
  }
}
