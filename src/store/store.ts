import type { Kysely } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import { createAccessReader, type ReadAccess } from './access-reader.js'
import { type CustomerReaders, createCustomerReaders } from './customer-readers.js'
import { openDatabase } from './dialect.js'
import { createExplanationReader, type ReadExplanation } from './explanation-reader.js'
import { lockStore } from './lock.js'
import { migrate } from './migrate.js'
import { placeOf, watchPlace } from './place.js'
import { settlePolicy } from './policy.js'
import type { Database } from './schema.js'
import { setSetting } from './settings.js'

export interface Store {
  /** The one connection that writes. */
  readonly writer: Kysely<Database>
  /** Reads on a connection of its own: never waits for a write, and sees every commit. */
  readonly readAccess: ReadAccess
  /** `referenceName`: where events carry the merchant's own reference, `externalRef` or `metadata.<key>`. */
  readonly customerReaders: (referenceName: string) => CustomerReaders
  /** Reads as `readAccess` does. */
  readonly readExplanation: ReadExplanation
  /**
   * That the open files are those at their paths: what is written to others nobody will find again.
   * @throws {LatchkeyError} `store_replaced`
   */
  assertInPlace(): void
  /** Whether a delivery could be stored now, by storing something. */
  canWrite(): Promise<boolean>
  close(): Promise<void>
}

/**
 * Opens the database for the one process that serves it, brings its schema up to date, and settles the policy.
 * @throws {LatchkeyError} `store_in_use`, `schema_too_new`, `store_unavailable`
 */
export async function openStore(path: string, configured: Policy, clock: () => number): Promise<Store> {
  const file = placeOf(path)
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
    const isInPlace = watchPlace(file)
    return {
      writer,
      readAccess: createAccessReader(reader, clock),
      customerReaders: (referenceName) => createCustomerReaders(reader, clock, referenceName),
      readExplanation: createExplanationReader(reader, clock, configured),
      assertInPlace: () => {
        if (isInPlace() && lock.isHeld()) return
        throw new LatchkeyError('store_replaced', `${file} or its lock was removed, replaced or emptied.`)
      },
      canWrite: () => canWrite(writer, clock()),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Commits something small: a full queue does not matter to it, and a full or read-only disk does. */
async function canWrite(writer: Kysely<Database>, now: number): Promise<boolean> {
  try {
    await writer.transaction().execute((trx) => setSetting(trx, 'probed_at', String(now)))
    return true
  } catch {
    return false
  }
}
