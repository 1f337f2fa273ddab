import { lstat } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { failureText } from '../errors.js'
import { backUp } from '../store/sqlite/copy.js'
import type { BackupReply, BackupRequest } from './scheduled-backups.js'

/*
 * The thread that makes a backup beside a running daemon: each step of copying blocks an event loop for a few
 * milliseconds, and checking the copy blocks it until the end.
 */

const { file, target } = workerData as BackupRequest
// On Linux a priority applies to one thread; elsewhere to the whole daemon.
if (process.platform === 'linux') {
  // Node's thread pool inherits the priority of the thread that first needs it, and serves the whole daemon.
  await lstat(target).catch(() => {})
  setPriority(0, constants.priority.PRIORITY_LOW)
}
const port = parentPort as MessagePort
const reply: BackupReply = await backUp(file, target, { overwrite: false }).then(
  (backup) => ({ backup }),
  (error: unknown) => ({ reason: failureText(error) }),
)
port.postMessage(reply)
