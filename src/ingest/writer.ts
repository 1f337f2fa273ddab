import type { Kysely } from 'kysely'
import { isStoreBroken, openDatabase } from '../store/dialect.js'
import { policyInForce } from '../store/policy.js'
import type { Database } from '../store/schema.js'
import { setSetting } from '../store/settings.js'
import { performSyncWrite, type WriteSync } from '../store/sync-writes.js'
import type { Incoming } from './delivery.js'
import { createRebuild, type Rebuild } from './rebuild.js'
import { createRefreshDue } from './refresh-due.js'
import { createWrittenBatch, type WrittenBatch } from './remarks.js'
import { createReplay, type Replay } from './replay.js'
import { createBatchWriter } from './write-batch.js'

/** All that changes the store while it is served. Each is one transaction, or several that each leave it whole. */
export interface Writer {
  /** Commits a batch whole or not at all; answers in the order of the deliveries. */
  writeBatch(deliveries: readonly Incoming[]): Promise<WrittenBatch>
  /** Writes down what the clock alone has changed since; answers how many entitlements that were. */
  refreshDue(): Promise<number>
  /** Whether a delivery could be stored now, by storing something small: a full or read-only disk can't. */
  canWrite(): Promise<boolean>
  /** @throws {LatchkeyError} `rebuild_interrupted` */
  readonly rebuild: Rebuild
  /** @throws {LatchkeyError} `replay_interrupted` */
  readonly replay: Replay
  readonly writeSync: WriteSync
}

/** A writer on a connection of its own, to be closed. */
export interface OpenWriter extends Writer {
  close(): Promise<void>
}

/** Opens a database whose schema is up to date, and writes to it in this thread. */
export function openWriter(file: string, clock: () => number): OpenWriter {
  const db = openDatabase(file, { readOnly: false })
  return { ...createWriter(db, clock), close: () => db.destroy() }
}

/** @param db a connection that nobody else writes through */
export function createWriter(db: Kysely<Database>, clock: () => number): Writer {
  const describe = createWrittenBatch()
  const writeBatch = createBatchWriter({ db, policy: policyInForce, clock })
  return {
    writeBatch: async (deliveries) => describe(await writeBatch(deliveries)),
    refreshDue: createRefreshDue({ db, clock }),
    rebuild: createRebuild({ db, clock }),
    replay: createReplay({ db, clock }),
    writeSync: (name, change) =>
      db.transaction().execute((trx) => performSyncWrite(trx, name, change, clock())),
    async canWrite() {
      try {
        await db.transaction().execute((trx) => setSetting(trx, 'probed_at', String(clock())))
        return true
      } catch (error) {
        if (isStoreBroken(error)) throw error
        return false
      }
    },
  }
}
