import { Worker } from 'node:worker_threads'
import { CompiledQuery, type Kysely, sql } from 'kysely'
import { isStoreBusy } from '../engine.js'
import type { Database } from '../schema.js'
import { threadFile } from './thread-file.js'

/** 16 MB in pages of 4 KiB: a page that is written often is moved once, yet a start replays little. */
const FRAMES_BEFORE_CHECKPOINT = 4_000

/** 40 MB: from here on the log is to begin anew, for which the writer has to move what is left by itself. */
const FRAMES_BEFORE_RESET = 10_000

/** So few that moving them holds up the deliveries for no more than some milliseconds. */
const FEW_FRAMES = 500

/** Should few never be left, the writer moves however many there are. */
const FRAMES_BEFORE_RESET_ANYWAY = 20_000

/** Should the thread have ended, commits checkpoint by themselves from here on (160 MB). */
const FRAMES_AT_MOST = 40_000

export interface Checkpoints {
  /** To be called after transactions: moves little by itself, if anything. */
  look(): Promise<void>
  close(): Promise<void>
}

/**
 * Keeps the write-ahead log of a writer short without its commits waiting for that: a thread moves the bulk of it,
 * the writer the little that was written meanwhile, and then the log begins anew.
 */
export async function startCheckpoints(db: Kysely<Database>, file: string): Promise<Checkpoints> {
  await sql`pragma wal_autocheckpoint = ${sql.lit(FRAMES_AT_MOST)}`.execute(db)
  let thread: Worker | null = null
  let hasEnded = false
  /** How many frames of the log will have been moved when the thread is done; null: it does nothing. */
  let goal: number | null = null

  function startMoving(frames: number): void {
    // Not before there is something to move: most stores are small, and a thread takes its time to start.
    thread ??= new Worker(threadFile(import.meta.url, 'checkpoint-thread'), { workerData: { file } })
      .on('message', () => {
        goal = null
      })
      .on('error', () => {
        hasEnded = true
      })
    goal = frames
    thread.postMessage('checkpoint')
  }

  return {
    async look() {
      if (hasEnded) return
      const { log, moved } = await framesOf(db)
      // Asked of the log itself, since a message from the thread waits for a pause between the batches.
      if (goal !== null && moved < goal && goal <= log) return
      goal = null
      const left = log - moved
      if (log >= FRAMES_BEFORE_RESET_ANYWAY || (log >= FRAMES_BEFORE_RESET && left <= FEW_FRAMES)) {
        await moveTheRest(db)
      } else if (left >= FRAMES_BEFORE_CHECKPOINT || log >= FRAMES_BEFORE_RESET) startMoving(log)
    },
    async close() {
      await thread?.terminate()
    },
  }
}

/** Once all is moved, the next transaction begins the log anew. */
async function moveTheRest(db: Kysely<Database>): Promise<void> {
  try {
    await sql`pragma wal_checkpoint(PASSIVE)`.execute(db)
  } catch (error) {
    // A full disk, or the like: the next time.
    if (!isStoreBusy(error)) throw error
  }
}

/** Composed once: it is asked after every transaction. */
const ASK_FRAMES = CompiledQuery.raw('pragma wal_checkpoint(NOOP)')

/** How much is in the write-ahead log, and how much of that has been moved. */
async function framesOf(db: Kysely<Database>): Promise<{ readonly log: number; readonly moved: number }> {
  const { rows } = await db.executeQuery<{ log: number; checkpointed: number }>(ASK_FRAMES)
  return { log: rows[0]?.log ?? 0, moved: rows[0]?.checkpointed ?? 0 }
}
