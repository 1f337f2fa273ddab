import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.js'
import { MAX_SOCKET_PATH_BYTES } from '../handlers/api-key.js'
import { newestBackupAt } from '../operations/backup-folder.js'
import { erasureListOf, readErasureList } from '../people/erasure-list.js'

/* Notes for the operator of a daemon in the log at its start. */

const NOT_THE_FIRST =
  'created an empty database where one existed before; if this is unexpected, stop the daemon and restore a backup ' +
  '(latchkey restore)'

/** Logs anything unusual about the opened store, which would otherwise be noticed too late. */
export function logStoreState(
  { file, isNew }: { readonly file: string; readonly isNew: boolean },
  { backup }: Pick<Config, 'backup'>,
  now: number,
  log: Logger,
): void {
  const list = erasureListOf(file)
  const unreadable = readErasureList(list)?.unreadable ?? 0
  if (unreadable > 0)
    log.warn(
      { file: list, lines: unreadable },
      'lines of the list of erasures can’t be read: replace the list with a good copy',
    )
  if (!isNew) return
  const backedUpAt = backup === null ? null : backedUpBy(backup.folder, now)
  if (backedUpAt !== null || existsSync(list)) {
    log.warn({ file, newestBackup: backedUpAt === null ? null : new Date(backedUpAt) }, NOT_THE_FIRST)
  } else log.info({ file }, 'created a new database')
}

/** Null also if the folder can't be read: the first backup reports that. */
function backedUpBy(folder: string, now: number): number | null {
  try {
    return newestBackupAt(folder, now)
  } catch {
    return null
  }
}

/** Null where there can be none, which must not stop the start: every system limits the length of its path. */
export async function usableSocket(file: string, log: Logger): Promise<string | null> {
  if (Buffer.byteLength(file) > MAX_SOCKET_PATH_BYTES) {
    log.warn({ file }, 'the path is too long for a local socket: commands need --url')
    return null
  }
  if (!(await isAnswered(file))) return file
  log.warn(
    { file },
    'another daemon uses this local socket: commands reach that one; use --url to reach this one',
  )
  return null
}

/** Daemons on one PostgreSQL may be started in one folder. */
async function isAnswered(file: string): Promise<boolean> {
  const socket = connect(file)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
