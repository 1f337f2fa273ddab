import { parentPort, workerData } from 'node:worker_threads'
import { openConnection } from './connection.js'

/*
 * At each message, moves most of the write-ahead log into the database while others go on writing.
 */

const { file, isMoving } = workerData as { readonly file: string; readonly isMoving: Int32Array }
const sqlite = openConnection(file, { readOnly: false })

parentPort?.on('message', () => {
  try {
    sqlite.pragma('wal_checkpoint(PASSIVE)')
  } catch {
    // The writer meets the same failure. The rest stays in the log until the next time.
  }
  Atomics.store(isMoving, 0, 0)
})
