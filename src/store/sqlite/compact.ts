import { type Kysely, sql } from 'kysely'
import type { Database } from '../schema.js'
import { isStoreBusy } from './connection.js'

/** Up to here it takes a second or two (0.5 s for 80 MB), which deliveries can wait; beyond, it is left to the operator. */
const QUICK_BYTES = 128 * 1024 * 1024

/**
 * Writes the whole database anew, without a byte that is not in use. What is overwritten is zeroed in its place; but
 * where rows move from page to page, copies of them may stay in bytes that no row uses (2 of 750 words, as tried).
 */
export async function compact(db: Kysely<Database>): Promise<void> {
  // A file for it would be one more that holds all, and in a folder that is everybody's.
  if ((await sizeOf(db)) <= QUICK_BYTES) await sql`pragma temp_store = memory`.execute(db)
  try {
    await sql`vacuum`.execute(db)
  } finally {
    await sql`pragma temp_store = default`.execute(db)
  }
}

/**
 * The same of a database that is small enough for it beside live traffic.
 * @returns false where it can't be done now: the disk is full, or the database locked
 */
export async function compactIfQuick(db: Kysely<Database>): Promise<boolean> {
  if ((await sizeOf(db)) > QUICK_BYTES) return true
  try {
    await compact(db)
    return true
  } catch (error) {
    if (isStoreBusy(error)) return false
    throw error
  }
}

async function sizeOf(db: Kysely<Database>): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select page_count * page_size as bytes from pragma_page_count, pragma_page_size`.execute(db)
  return Number(rows[0]?.bytes ?? 0)
}
