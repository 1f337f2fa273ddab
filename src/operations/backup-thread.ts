import { constants, setPriority } from 'node:os'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { failureText } from '../errors.js'
import { backUp } from '../store/sqlite/copy.js'
import type { BackupReply, BackupRequest } from './scheduled-backups.js'

/*
 * The thread that makes a backup beside a running daemon: copying blocks an event loop for a few milliseconds at each
 * step, and checking the copy for as long as that takes.
 */

// On Linux a priority is of one thread; elsewhere it would be that of the whole daemon.
if (process.platform === 'linux') setPriority(0, constants.priority.PRIORITY_LOW)
;(parentPort as MessagePort).postMessage(await reply(workerData as BackupRequest))

async function reply({ file, target }: BackupRequest): Promise<BackupReply> {
  try {
    return { backup: await backUp(file, target, { overwrite: false }) }
  } catch (error) {
    return { reason: failureText(error) }
  }
}
