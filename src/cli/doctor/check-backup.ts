import type { Config } from '../../config/types.js'
import { createBackupFolder } from '../../store/backup-folder.js'
import { durationText } from './amounts.js'
import { type Finding, fail, ok, warn } from './finding.js'

/** A backup takes its time, and one that failed is tried again. */
const LATE = 1.5

/** Whether backups are made as often as the config says; nothing where it says nothing of them. */
export function checkBackup({ backup }: Config, now: number): readonly Finding[] {
  if (backup === null) return []
  const { folder, everyMs, keep } = backup
  const newestAt = createBackupFolder(folder, keep).newestAt()
  const todo = 'the daemon makes them while it runs; its log says why one failed'
  if (newestAt === null) return [warn('backup', `none in ${folder} yet`, todo)]
  const age = Math.max(0, now - newestAt)
  const detail = `the newest is ${durationText(age)} old, and one is due every ${durationText(everyMs)}`
  return [age > LATE * everyMs ? fail('backup', detail, todo) : ok('backup', detail)]
}
