import { parentPort, workerData } from 'node:worker_threads'
import { openConnection } from './connection.js'

/*
 * The thread that moves the bulk of the write-ahead log into the database, at each message, while others go on writing.
 */

const { file, isMoving } = workerData as { readonly file: string; readonly isMoving: Int32Array }
const sqlite = openConnection(file, { readOnly: false })

parentPort?.on('message', () => {
  try {
    sqlite.pragma('wal_checkpoint(PASSIVE)')
  } catch {
    // The writer meets the same trouble. What is left stays in the log, and is moved the next time.
  }
  Atomics.store(isMoving, 0, 0)
})
