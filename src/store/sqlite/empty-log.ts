import { setTimeout as wait } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { Database } from '../schema.js'
import { isStoreBusy } from './connection.js'

/** A question takes milliseconds; whoever reads longer, such as a backup, is waited for by whoever asks again. */
const ATTEMPTS = 40
const WAIT_MS = 50

/**
 * Moves all of the write-ahead log into the database and cuts it to nothing, so that what was overwritten lives on
 * nowhere.
 * @returns false while somebody reads from it
 */
export async function emptyLog(db: Kysely<Database>): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (attempt > 0) await wait(WAIT_MS)
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
