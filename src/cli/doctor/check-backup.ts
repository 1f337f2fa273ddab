import type { Config } from '../../config/types.js'
import { isExplained } from '../../errors.js'
import { backupFileAt, newestBackupAt } from '../../operations/backup-folder.js'
import { durationText } from './amounts.js'
import { type Finding, fail, ok, warn } from './finding.js'

/** A backup takes its time, and one that failed is tried again. */
const LATE = 1.5

/** Whether backups are made as often as the config says. */
export function checkBackup({ backup }: Config, now: number): readonly Finding[] {
  if (backup === null) {
    return [ok('backup', 'none are scheduled; `latchkey backup` makes one')]
  }
  const { folder, everyMs } = backup
  const newestAt = orRefusal(() => newestBackupAt(folder, now))
  if (newestAt instanceof Error) {
    const fix = 'name a folder in backup.folder that the daemon may read and write, or one that it can make'
    return [fail('backup', `none can be made: ${newestAt.message}`, fix)]
  }
  const todo = 'the daemon makes them while it runs; its log says why one failed'
  if (newestAt === null) return [warn('backup', `none in ${folder} yet`, todo)]
  const age = now - newestAt
  const detail = `the newest is ${durationText(age)} old, and one is due every ${durationText(everyMs)}`
  return [age > LATE * everyMs ? fail('backup', detail, todo) : ok('backup', detail)]
}

/** The path of the newest backup; null where there is none, or the folder can't be read. */
export function newestBackup({ backup }: Config, now: number): string | null {
  if (backup === null) return null
  const newestAt = orRefusal(() => newestBackupAt(backup.folder, now))
  return newestAt === null || newestAt instanceof Error ? null : backupFileAt(backup.folder, newestAt)
}

/** What the system said where the folder can't be read, or is none; anything else is a bug. */
function orRefusal<Answer>(ask: () => Answer): Answer | Error {
  try {
    return ask()
  } catch (error) {
    if (error instanceof Error && isExplained(error)) return error
    throw error
  }
}
