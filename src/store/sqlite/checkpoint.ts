import { Worker } from 'node:worker_threads'
import { CompiledQuery, sql } from 'kysely'
import { threadFile } from '../../package-file.js'
import { isStoreBusy } from '../engine.js'
import type { Db } from '../schema.js'

/** 16 MB in pages of 4 KiB: a page that is written often is moved once, yet a start replays little. */
const FRAMES_BEFORE_CHECKPOINT = 4_000

/** 40 MB: from here on the log should restart from its beginning, for which the writer must move the last frames. */
const FRAMES_BEFORE_RESET = 10_000

/** So few that moving them delays deliveries for only a few milliseconds. */
const FEW_FRAMES = 500

/** 80 MB: the writer moves the rest, however much it is. */
const FRAMES_BEFORE_RESET_ANYWAY = 20_000

/** 160 MB: if the thread has failed, commits checkpoint by themselves from here on. */
const FRAMES_AT_MOST = 40_000

/**
 * Keeps a writer's write-ahead log short without delaying its commits: a thread moves most of it into the database,
 * the writer moves the few frames written meanwhile, and then the log restarts from its beginning. Call `look` after
 * each transaction.
 */
export async function startCheckpoints(db: Db, file: string) {
  await sql`pragma wal_autocheckpoint = ${sql.lit(FRAMES_AT_MOST)}`.execute(db)
  let thread: Worker | null = null
  let hasEnded = false
  // Shared memory: a message from the thread would only arrive in a pause between batches.
  const isMoving = new Int32Array(new SharedArrayBuffer(4))

  return {
    async look() {
      if (hasEnded || Atomics.load(isMoving, 0) === 1) return
      // How many frames are in the log, and how many of them have been moved.
      const { rows } = await db.executeQuery<{ log: number; checkpointed: number }>(ASK_FRAMES)
      const { log, checkpointed } = rows[0] ?? { log: 0, checkpointed: 0 }
      const left = log - checkpointed
      if (log >= FRAMES_BEFORE_RESET_ANYWAY || (log >= FRAMES_BEFORE_RESET && left <= FEW_FRAMES)) {
        // Once all frames are moved, the next transaction starts the log from its beginning.
        try {
          await sql`pragma wal_checkpoint(PASSIVE)`.execute(db)
        } catch (error) {
          // A full disk, or the like: retried the next time.
          if (!isStoreBusy(error)) throw error
        }
      } else if (left >= FRAMES_BEFORE_CHECKPOINT || log >= FRAMES_BEFORE_RESET) {
        // Started on first use: most stores are small, and a thread takes time to start.
        thread ??= new Worker(threadFile('store/sqlite/checkpoint-thread'), {
          workerData: { file, isMoving },
        }).on('error', () => {
          hasEnded = true
        })
        Atomics.store(isMoving, 0, 1)
        thread.postMessage('checkpoint')
      }
    },
    async close() {
      await thread?.terminate()
    },
  }
}

const ASK_FRAMES = CompiledQuery.raw('pragma wal_checkpoint(NOOP)')
