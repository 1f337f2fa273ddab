import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { openConnection } from './connection.js'

/*
 * The thread that moves the bulk of the write-ahead log into the database, at each message, while others go on writing.
 * It answers when it is done, whatever came of it: the writer meets the same trouble.
 */

const port = parentPort as MessagePort
const sqlite = openConnection((workerData as { readonly file: string }).file, { readOnly: false })

port.on('message', () => {
  try {
    sqlite.pragma('wal_checkpoint(PASSIVE)')
  } catch {
    // What is left stays in the log, and is moved the next time.
  }
  port.postMessage('done')
})
