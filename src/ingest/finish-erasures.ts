import { setImmediate as turn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import type { Environment } from '../provider/event.js'
import { createErasedPeople, type ErasedPeople } from '../provider/known-people.js'
import { type ErasedIds, loadErasedIds } from '../store/erased-ids.js'
import type { Database } from '../store/schema.js'
import { compactIfQuick, emptyLog } from '../store/sqlite/compact.js'
import { loadSeqsBeyond } from '../store/stored-bodies.js'
import {
  loadUnfinishedErasures,
  saveFinished,
  saveSwept,
  type UnfinishedErasure,
} from '../store/unfinished-erasures.js'
import { scrubStored } from './scrub-stored.js'
import type { WorkOptions } from './work-options.js'

/** Looked through in one transaction: bounds how long arriving deliveries wait for it. */
const EVENTS_PER_BATCH = 100

export interface FinishErasuresDeps {
  readonly db: Kysely<Database>
  readonly clock: () => number
  readonly batchSize?: number
}

/**
 * Looks through all stored events for people who were erased, and leaves nothing of what was overwritten: neither in
 * unused bytes nor in the write-ahead log. Interrupted, it goes on from where it was.
 * @returns how many erasures are not finished: it was told to stop, or somebody is reading from the log
 */
export type FinishErasures = (options?: WorkOptions) => Promise<number>

export function createFinishErasures({
  db,
  clock,
  batchSize = EVENTS_PER_BATCH,
}: FinishErasuresDeps): FinishErasures {
  return async ({ onProgress = () => {}, isStopping = () => false } = {}) => {
    for (;;) {
      const unfinished = await loadUnfinishedErasures(db)
      if (unfinished.length === 0) return 0
      const unswept = unfinished.filter(({ sweptTo, sweepEnd }) => sweptTo < sweepEnd)
      if (unswept.length > 0) {
        if (!(await sweep(unswept, onProgress, isStopping))) return unfinished.length
      } else {
        if (!(await compactIfQuick(db)) || !(await emptyLog(db))) return unfinished.length
        await db.transaction().execute((trx) => saveFinished(trx, unfinished, clock()))
      }
    }
  }

  /** One way through the events for all of them together; false: told to stop. */
  async function sweep(
    erasures: readonly UnfinishedErasure[],
    onProgress: NonNullable<WorkOptions['onProgress']>,
    isStopping: NonNullable<WorkOptions['isStopping']>,
  ): Promise<boolean> {
    const end = Math.max(...erasures.map(({ sweepEnd }) => sweepEnd))
    const erased = await loadErasedIds(db)
    let reached = Math.min(...erasures.map(({ sweptTo }) => sweptTo))
    while (reached < end) {
      onProgress(reached, end)
      if (await isStopping()) return false
      // Requests are answered between two batches.
      await turn()
      const from: number = reached
      reached = await db.transaction().execute(async (trx) => {
        const rows = await loadSeqsBeyond(trx, from, end, batchSize)
        for (const [environment, people] of peopleOf(erasures, erased)) {
          const own = rows.filter((row) => row.environment === environment)
          await scrubStored(
            trx,
            environment,
            own.map(({ seq }) => seq),
            people,
            clock(),
          )
        }
        const next = rows.length < batchSize ? end : (rows.at(-1)?.seq ?? end)
        await saveSwept(trx, erasures, next)
        return next
      })
    }
    return true
  }
}

/** By environment. Until all is looked through, they are known by their very words too. */
function peopleOf(
  erasures: readonly UnfinishedErasure[],
  erased: ErasedIds,
): ReadonlyMap<Environment, ErasedPeople> {
  return new Map(
    [...erased].flatMap(([environment, known]) => {
      const own = erasures.filter((erasure) => erasure.environment === environment)
      if (own.length === 0) return []
      const words = own.flatMap(({ knownBy }) => knownBy)
      return [[environment, createErasedPeople({ ...known, words })] as const]
    }),
  )
}
