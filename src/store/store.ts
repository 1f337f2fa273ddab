import type { Kysely } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import { createAccessReader, type ReadAccess } from './access-reader.js'
import { type CustomerReaders, createCustomerReaders } from './customer-readers.js'
import { openDatabase } from './dialect.js'
import { createExplanationReader, type ReadExplanation } from './explanation-reader.js'
import { lockStore } from './lock.js'
import { migrate } from './migrate.js'
import { settlePolicy } from './policy.js'
import type { Database } from './schema.js'

export interface Store {
  /** The one connection that writes. */
  readonly writer: Kysely<Database>
  /** Reads on a connection of its own: never waits for a write, and sees every commit. */
  readonly readAccess: ReadAccess
  /** `referenceName`: where events carry the merchant's own reference, `externalRef` or `metadata.<key>`. */
  readonly customerReaders: (referenceName: string) => CustomerReaders
  /** Reads as `readAccess` does. */
  readonly readExplanation: ReadExplanation
  canWrite(): Promise<boolean>
  close(): Promise<void>
}

/**
 * Opens the database for the one process that serves it, brings its schema up to date, and settles the policy.
 * @throws {LatchkeyError} `store_in_use`, `schema_too_new`, `store_unavailable`
 */
export async function openStore(file: string, configured: Policy, clock: () => number): Promise<Store> {
  const lock = lockStore(file)
  const opened: Kysely<Database>[] = []
  const close = async (): Promise<void> => {
    // The writer last: only then can it empty the write-ahead log into the database.
    for (const db of opened.reverse()) await db.destroy()
    lock.release()
  }
  try {
    const writer = openDatabase(file, { readOnly: false })
    opened.push(writer)
    await migrate(writer)
    await settlePolicy(writer, configured)
    const reader = openDatabase(file, { readOnly: true })
    opened.push(reader)
    return {
      writer,
      readAccess: createAccessReader(reader, clock),
      customerReaders: (referenceName) => createCustomerReaders(reader, clock, referenceName),
      readExplanation: createExplanationReader(reader, clock, configured),
      canWrite: () => canWrite(writer),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Takes the write lock and gives it back: tells a full queue (fine) from a store that refuses. */
async function canWrite(writer: Kysely<Database>): Promise<boolean> {
  try {
    await writer.transaction().execute(async () => {})
    return true
  } catch {
    return false
  }
}
