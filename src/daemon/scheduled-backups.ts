import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../config/types.js'
import { createBackupFolder } from '../operations/backup-folder.js'
import { createBackupGauge } from '../operations/backup-gauge.js'
import type { Schedule } from '../operations/schedule.js'
import { startScheduledBackups } from '../operations/scheduled-backups.js'
import { startBackup } from '../operations/start-backup.js'

/** Null where the config asks for none. */
export function scheduledBackups(
  { backup, database }: Config,
  registry: Registry,
  clock: () => number,
  log: Logger,
): Schedule | null {
  if (backup === null) return null
  return startScheduledBackups({
    everyMs: backup.everyMs,
    backups: createBackupFolder(backup.folder, backup.keep),
    startBackup: (target) => startBackup(database.file, target),
    report: createBackupGauge(registry),
    clock,
    log,
  })
}
