import type { Kysely } from 'kysely'
import { createBatchWriter } from '../ingest/commit.js'
import type { Incoming } from '../ingest/delivery.js'
import { createWrittenBatch, type WrittenBatch } from '../ingest/remarks.js'
import { refreshDue } from '../ingest/settle.js'
import type { WorkOptions } from '../ingest/work-options.js'
import { applyErasureList, erasureListOf, listErasures } from '../people/erasure-list.js'
import { finishErasures } from '../people/remove-stored.js'
import { recompute } from '../recompute/recompute.js'
import type { RecomputePlan, RecomputeReport } from '../recompute/run.js'
import { isStoreBroken } from '../store/engine.js'
import { expireBodies } from '../store/expire-bodies.js'
import type { Database } from '../store/schema.js'
import { policyInForce, setSetting } from '../store/settings.js'
import { openDatabase } from '../store/sqlite/dialect.js'
import { performSyncWrite, type WriteSync } from '../store/sync-writes.js'

/** All that changes the store while it is served. Each is one transaction, or several that each leave it whole. */
export interface Writer {
  /** Commits a batch whole or not at all; answers in the order of the deliveries. */
  writeBatch(deliveries: readonly Incoming[]): Promise<WrittenBatch>
  /** Writes down what the clock alone has changed since; answers how many entitlements that were. */
  refreshDue(): Promise<number>
  /** Whether a delivery could be stored now, by storing something small: a full or read-only disk can't. */
  canWrite(): Promise<boolean>
  /** @throws {LatchkeyError} as `recompute` does */
  recompute(plan: RecomputePlan, options?: WorkOptions): Promise<RecomputeReport>
  /** Erases whom the list beside the database has and it does not, and finishes what was interrupted; how many. */
  applyErasureList(): Promise<number>
  /** Removes what is stored of everybody who is erased. */
  finishErasures(): Promise<void>
  /** Removes the next bodies of events received before an instant (epoch milliseconds); how many: 0 once all are. */
  dropBodies(before: number): Promise<number>
  readonly writeSync: WriteSync
}

/** A writer on a connection of its own, to be closed. */
export interface OpenWriter extends Writer {
  close(): Promise<void>
}

/**
 * Opens a database whose schema is up to date, and writes to it in this thread.
 * @param erasureList where erasures are written down: beside the database, or beside the one whose place it is to take
 */
export function openWriter(file: string, clock: () => number, erasureList = erasureListOf(file)): OpenWriter {
  const db = openDatabase(file, { readOnly: false })
  return { ...createWriter({ db, clock, erasureList }), close: () => db.destroy() }
}

export interface WriterDeps {
  /** A connection that nobody else writes through. */
  readonly db: Kysely<Database>
  readonly clock: () => number
  /** Where erasures are written down. */
  readonly erasureList: string
}

export function createWriter({ db, clock, erasureList }: WriterDeps): Writer {
  const describe = createWrittenBatch()
  const writeBatch = createBatchWriter({
    db,
    policy: policyInForce,
    clock,
    recordErasures: (acts) => listErasures(erasureList, acts),
  })
  return {
    writeBatch: async (deliveries) => describe(await writeBatch(deliveries)),
    async applyErasureList() {
      const again = await applyErasureList(db, erasureList, writeBatch)
      await finishErasures(db, clock)
      return again
    },
    finishErasures: () => finishErasures(db, clock),
    dropBodies: (before) => db.transaction().execute((trx) => expireBodies(trx, before, clock())),
    refreshDue: () => refreshDue(db, clock),
    recompute: (plan, options) => recompute({ db, clock }, plan, options),
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
