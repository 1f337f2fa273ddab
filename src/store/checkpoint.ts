import { Worker } from 'node:worker_threads'
import { CompiledQuery, type Kysely, sql } from 'kysely'
import { isStoreBusy } from './connection.js'
import type { Database } from './schema.js'
import { threadFile } from './thread-file.js'

/** 16 MB in pages of 4 KiB: a page that is written often is moved once, yet a start replays little. */
const FRAMES_BEFORE_CHECKPOINT = 4_000

/** Should the thread have ended, commits checkpoint by themselves from here on (160 MB). */
const FRAMES_AT_MOST = 40_000

export interface Checkpoints {
  /** To be called after transactions: moves little by itself, if anything. */
  look(): Promise<void>
  close(): Promise<void>
}

interface CheckpointThread {
  readonly worker: Worker
  readonly exited: Promise<void>
}

/**
 * Keeps the write-ahead log of a writer short without its commits waiting for that: a thread moves the bulk of it,
 * the writer the little that was written meanwhile, and then the log begins anew.
 */
export async function startCheckpoints(db: Kysely<Database>, file: string): Promise<Checkpoints> {
  await sql`pragma wal_autocheckpoint = ${sql.lit(FRAMES_AT_MOST)}`.execute(db)
  let state: 'idle' | 'moving' | 'moved' | 'ended' = 'idle'
  let thread: CheckpointThread | null = null

  function startThread(): CheckpointThread {
    const worker = new Worker(threadFile(import.meta.url, 'checkpoint-thread'), { workerData: { file } })
    worker.on('message', () => {
      if (state === 'moving') state = 'moved'
    })
    worker.on('error', () => {
      state = 'ended'
    })
    return { worker, exited: new Promise((resolve) => worker.on('exit', () => resolve())) }
  }

  async function finish(): Promise<void> {
    try {
      await sql`pragma wal_checkpoint(PASSIVE)`.execute(db)
    } catch (error) {
      // A full disk, or the like: the next time.
      if (!isStoreBusy(error)) throw error
    }
    state = 'idle'
  }

  return {
    async look() {
      if (state === 'moved') return finish()
      if (state !== 'idle' || (await framesOf(db)) < FRAMES_BEFORE_CHECKPOINT) return
      state = 'moving'
      // Not before there is something to move: most stores are small, and a thread takes its time to start.
      thread ??= startThread()
      thread.worker.postMessage('checkpoint')
    },
    async close() {
      thread?.worker.postMessage('close')
      await thread?.exited
    },
  }
}

/** Composed once: it is asked after every transaction. */
const ASK_FRAMES = CompiledQuery.raw('pragma wal_checkpoint(NOOP)')

/** How much of the write-ahead log is still to be moved. */
async function framesOf(db: Kysely<Database>): Promise<number> {
  const { rows } = await db.executeQuery<{ log: number; checkpointed: number }>(ASK_FRAMES)
  return (rows[0]?.log ?? 0) - (rows[0]?.checkpointed ?? 0)
}
