import { constants, setPriority } from 'node:os'
import { failureText } from '../errors.js'
import { backUp } from '../store/sqlite/backup.js'
import { removePartsOf } from '../store/sqlite/part-file.js'
import type { BackupReply } from './start-backup.js'

/*
 * A process of its own for a backup beside a daemon: looking at every page of the copy can't be interrupted, and this
 * one can be killed meanwhile. It gives way to the daemon, and ends with it.
 */

const [file = '', target = ''] = process.argv.slice(2)
setPriority(constants.priority.PRIORITY_LOW)
// A signal to the whole group is for the daemon to act on.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.once('disconnect', () => {
  removePartsOf(target)
  process.exit(1)
})
process.send?.(await reply(), () => process.exit(0))

async function reply(): Promise<BackupReply> {
  try {
    return { backup: await backUp(file, target, { overwrite: false }) }
  } catch (error) {
    return { reason: failureText(error) }
  }
}
