import { createBatchWriter } from '../ingest/commit.js'
import { refreshDue } from '../ingest/settle.js'
import { applyErasureList, erasureListOf, listErasures } from '../people/erasure-list.js'
import { finishErasures } from '../people/remove-stored.js'
import { applyPlan } from '../recompute/apply.js'
import type { ApplyPlan, WorkOptions } from '../recompute/run.js'
import { alone, beside, engineOf, isStoreBroken } from '../store/engine.js'
import { expireBodies } from '../store/expire-bodies.js'
import type { Db } from '../store/schema.js'
import { policyInForce, saveKeyUses, setSetting } from '../store/settings.js'
import { openDatabase } from '../store/sqlite/dialect.js'
import { performSyncWrite, type WriteSync } from '../sync/writes.js'

/** All changes to the store while it is served. Each is one transaction, or several that each leave it consistent. */
export type Writer = ReturnType<typeof createWriter>

/** A writer with a connection of its own, which must be closed. */
export interface OpenWriter extends Writer {
  close(): Promise<void>
}

/**
 * Opens a database whose schema is up to date, to write to it in this thread.
 * @param erasureList the file for erasures: beside the database, or beside the one that it will replace
 */
export function openWriter(file: string, clock: () => number, erasureList = erasureListOf(file)): OpenWriter {
  const db = openDatabase(file, { readOnly: false })
  return { ...createWriter({ db, clock, erasureList }), close: () => db.destroy() }
}

export interface WriterDeps {
  /** A connection for this writer alone. */
  readonly db: Db
  readonly clock: () => number
  /**
   * The file for erasures; null: there is none, since other processes write to the database too, and its own backups
   * bring nobody back unnoticed.
   */
  readonly erasureList: string | null
}

export function createWriter({ db, clock, erasureList }: WriterDeps) {
  /** Commits a batch whole or not at all; answers in the order of the deliveries. */
  const writeBatch = createBatchWriter({
    db,
    policy: policyInForce,
    clock,
    isAlone: erasureList !== null,
    ...(erasureList !== null && { recordErasures: (acts) => listErasures(erasureList, acts) }),
  })
  return {
    writeBatch,
    /**
     * Erases everyone on the list who is still in the database, and finishes interrupted erasures; returns their number.
     */
    async applyErasureList(): Promise<number> {
      // Another process may be writing: a start waits for nobody, and the schedule finishes what is left.
      if (erasureList === null) return 0
      const again = await applyErasureList(db, erasureList, writeBatch)
      await finishErasures(db, clock)
      return again
    },
    /** Removes the remaining data of everyone who is erased. */
    finishErasures: () => finishErasures(db, clock),
    /**
     * Removes the next bodies received before an instant (epoch milliseconds); returns their number, 0 once all are
     * gone.
     */
    dropBodies: (before: number) => alone(db, (trx) => expireBodies(trx, before, clock())),
    /** Stores the changes that time alone has caused; returns the number of entitlements changed. */
    refreshDue: () => refreshDue(db, clock),
    /** @throws {LatchkeyError} as `applyPlan` does */
    recompute: (plan: ApplyPlan, options?: WorkOptions) => applyPlan({ db, clock }, plan, options),
    writeSync: ((name, change) =>
      beside(db, (trx) => performSyncWrite(trx, name, change, clock()))) as WriteSync,
    /** @param uses epoch milliseconds, by the hashes of API keys */
    saveKeyUses: (uses: ReadonlyMap<string, number>) =>
      beside(db, async (trx) => {
        await engineOf(trx).lock(trx, ['keys'])
        await saveKeyUses(trx, uses)
      }),
    /** Tests whether a delivery could be stored, by a small write: it fails on a full or read-only disk. */
    async canWrite(): Promise<boolean> {
      try {
        await beside(db, (trx) => setSetting(trx, 'probed_at', String(clock())))
        return true
      } catch (error) {
        if (isStoreBroken(error)) throw error
        return false
      }
    },
  }
}
