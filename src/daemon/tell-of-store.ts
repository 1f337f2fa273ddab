import { existsSync } from 'node:fs'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.js'
import { newestBackupAt } from '../operations/backup-folder.js'
import { erasureListOf, readErasureList } from '../people/erasure-list.js'

export interface OpenedStore {
  readonly file: string
  readonly isNew: boolean
}

const NOT_THE_FIRST =
  'made a new, empty database, though there was one before: if it should not be empty, stop, and put a backup in its ' +
  'place (latchkey restore)'

/** Says in the log what is unusual about the store that was opened: nobody else would notice before it matters. */
export function tellOfStore(
  { file, isNew }: OpenedStore,
  { backup }: Pick<Config, 'backup'>,
  now: number,
  log: Logger,
): void {
  const list = erasureListOf(file)
  const unreadable = readErasureList(list)?.unreadable ?? 0
  if (unreadable > 0)
    log.warn(
      { file: list, lines: unreadable },
      'lines of the list of erasures can’t be read: put a copy of the list in its place',
    )
  if (!isNew) return
  const backedUpAt = backup === null ? null : backedUpBy(backup.folder, now)
  if (backedUpAt !== null || existsSync(list)) {
    log.warn({ file, newestBackup: backedUpAt === null ? null : new Date(backedUpAt) }, NOT_THE_FIRST)
  } else log.info({ file }, 'made a new database')
}

/** Null also where the folder can't be read, which the first backup tells. */
function backedUpBy(folder: string, now: number): number | null {
  try {
    return newestBackupAt(folder, now)
  } catch {
    return null
  }
}
