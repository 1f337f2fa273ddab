import { statSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { Database } from '../schema.js'
import { isStoreBusy } from './connection.js'
import { openDatabase } from './dialect.js'
import { lockStore, placeOf, removeLeftBehind } from './file.js'

/** Up to here it takes a second or two (0.5 s for 80 MB), which deliveries can wait; beyond, it is left to the operator. */
const QUICK_BYTES = 128 * 1024 * 1024

/** A question takes milliseconds; a longer reader, such as a backup, is left to the caller's next attempt. */
const EMPTY_ATTEMPTS = 40
const EMPTY_WAIT_MS = 50

/**
 * Rewrites the whole database, without a byte that is not in use. What is overwritten is zeroed in its place; but
 * where rows move from page to page, copies of them may stay in bytes that no row uses (2 of 750 words, as tried).
 */
async function compact(db: Kysely<Database>): Promise<void> {
  // A file for it would be one more that holds everything, in a folder that every user can read.
  if ((await sizeOf(db)) <= QUICK_BYTES) await sql`pragma temp_store = memory`.execute(db)
  try {
    await sql`vacuum`.execute(db)
  } finally {
    await sql`pragma temp_store = default`.execute(db)
  }
}

async function sizeOf(db: Kysely<Database>): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select page_count * page_size as bytes from pragma_page_count, pragma_page_size`.execute(db)
  return Number(rows[0]?.bytes ?? 0)
}

/**
 * Moves all of the write-ahead log into the database and cuts it to nothing, so that nothing overwritten is left there.
 * @returns false while somebody reads from it
 */
export async function emptyLog(db: Kysely<Database>): Promise<boolean> {
  for (let attempt = 0; attempt < EMPTY_ATTEMPTS; attempt += 1) {
    if (attempt > 0) await wait(EMPTY_WAIT_MS)
    if (await tryToEmpty(db)) return true
  }
  return false
}

async function tryToEmpty(db: Kysely<Database>): Promise<boolean> {
  try {
    const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(TRUNCATE)`.execute(db)
    return rows[0]?.busy === 0
  } catch (error) {
    if (isStoreBusy(error)) return false
    throw error
  }
}

/**
 * Rewrites a database that no daemon serves; answers with its size in bytes, before and after.
 * @throws {LatchkeyError} `store_in_use`
 */
export async function compactFile(path: string) {
  const file = placeOf(path)
  const lock = lockStore(file)
  try {
    removeLeftBehind(file)
    const before = statSync(file).size
    const db = openDatabase(file, { readOnly: false })
    try {
      await compact(db)
      await emptyLog(db)
    } finally {
      await db.destroy()
    }
    return { file, before, after: statSync(file).size }
  } finally {
    lock.release()
  }
}
