import { Worker } from 'node:worker_threads'
import { CompiledQuery, type Kysely, sql } from 'kysely'
import { isStoreBusy } from '../engine.js'
import type { Database } from '../schema.js'
import { threadFile } from './thread-file.js'

/** 16 MB in pages of 4 KiB: a page that is written often is moved once, yet a start replays little. */
const FRAMES_BEFORE_CHECKPOINT = 4_000

/** 40 MB: from here on the log should start from its beginning, for which the writer has to move the last frames. */
const FRAMES_BEFORE_RESET = 10_000

/** So few that moving them holds up the deliveries for no more than some milliseconds. */
const FEW_FRAMES = 500

/** 80 MB: the writer moves what is left, however much that is. */
const FRAMES_BEFORE_RESET_ANYWAY = 20_000

/** 160 MB: where the thread has failed, commits checkpoint by themselves from here on. */
const FRAMES_AT_MOST = 40_000

/**
 * Keeps the write-ahead log of a writer short without its commits waiting for that: a thread moves the bulk of it into the
 * database, the writer the little that was written meanwhile, and then the log starts from its beginning. Call `look`
 * after each transaction.
 */
export async function startCheckpoints(db: Kysely<Database>, file: string) {
  await sql`pragma wal_autocheckpoint = ${sql.lit(FRAMES_AT_MOST)}`.execute(db)
  let thread: Worker | null = null
  let hasEnded = false
  // Shared memory, since a message from the thread would wait for a pause between the batches.
  const isMoving = new Int32Array(new SharedArrayBuffer(4))

  return {
    async look() {
      if (hasEnded || Atomics.load(isMoving, 0) === 1) return
      const { log, moved } = await framesOf(db)
      const left = log - moved
      if (log >= FRAMES_BEFORE_RESET_ANYWAY || (log >= FRAMES_BEFORE_RESET && left <= FEW_FRAMES)) {
        await moveTheRest(db)
      } else if (left >= FRAMES_BEFORE_CHECKPOINT || log >= FRAMES_BEFORE_RESET) {
        // Not before there is something to move: most stores are small, and a thread takes its time to start.
        thread ??= new Worker(threadFile(import.meta.url, 'checkpoint-thread'), {
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

/** Once all frames are moved, the next transaction starts the log from its beginning. */
async function moveTheRest(db: Kysely<Database>): Promise<void> {
  try {
    await sql`pragma wal_checkpoint(PASSIVE)`.execute(db)
  } catch (error) {
    // A full disk, or the like: the next time.
    if (!isStoreBusy(error)) throw error
  }
}

const ASK_FRAMES = CompiledQuery.raw('pragma wal_checkpoint(NOOP)')

/** How many frames are in the log, and how many of them have been moved. */
async function framesOf(db: Kysely<Database>): Promise<{ log: number; moved: number }> {
  const { rows } = await db.executeQuery<{ log: number; checkpointed: number }>(ASK_FRAMES)
  return { log: rows[0]?.log ?? 0, moved: rows[0]?.checkpointed ?? 0 }
}
