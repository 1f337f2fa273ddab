import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../config/schema.js'
import { isExplained } from '../errors.js'
import { backupFileAt, newestBackupAt } from '../operations/backup-folder.js'
import { isOverdue } from '../operations/cron.js'
import type { BackupTimes } from '../operations/scheduled-backups.js'
import { erasureListOf } from '../people/erasure-list.js'
import { sizeOf } from '../store/sqlite/file.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'
import { bytesText, counted, durationText, type Finding, fail, instantText, ok, warn } from './finding.js'

const OTHERS = 0o077

/** Checks who may read or write the config, the database and the list of erasures, by the modes of the files. */
export function checkFiles({ path: config, database }: Config): readonly Finding[] {
  const found = [config, database.file, erasureListOf(database.file)].flatMap((path) => {
    try {
      // Other checks report a missing file.
      const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
      if ((mode & OTHERS) === 0) return []
      const detail = `others can open ${path}, with the mode ${(mode & 0o777).toString(8).padStart(4, '0')}`
      // A config may have no secrets of its own.
      return [(path === config ? warn : fail)('files', detail, `chmod 600 ${path}`)]
    } catch (error) {
      if (!isSystemRefusal(error)) throw error
      const todo = isOfAnotherUser(error) ? AS_ITS_USER : 'check its folder'
      return [fail('files', `the mode of ${path} can’t be read, ${refusalText(error)}`, todo)]
    }
  })
  return found.length > 0 ? found : [ok('files', 'nobody else may read or write them')]
}

/** A week is long enough to give an app another key. */
const KEY_SOON_MS = 7 * 86_400_000

/** Checks which API keys have expired, or soon will. One that was rotated is meant to. */
export function checkKeys({ apiKeys }: Config, now: number): readonly Finding[] {
  const ending = apiKeys.flatMap(({ name, expiresAt, isReplaced }) => {
    if (expiresAt === null || isReplaced || expiresAt - now > KEY_SOON_MS) return []
    const when = `${expiresAt <= now ? 'expired' : 'expires'} at ${instantText(expiresAt)}`
    return [warn('keys', `"${name}" ${when}`, `latchkey keys rotate "${name}" --expires 90d`)]
  })
  return ending.length > 0 ? ending : [ok('keys', counted(apiKeys.length, 'key'))]
}

const MB = 1024 * 1024

/** With less than this the next burst of deliveries may not fit. */
const FREE_AT_LEAST = 100 * MB
const FREE_BETTER = 500 * MB

/** The daemon truncates its log to 64 MB when it can: a much larger one means that something keeps it open. */
const WAL_AT_MOST = 4 * 64 * MB

/** Checks that there is room on the disk, also for another write-ahead log of the same size. */
export function checkDisk(file: string): readonly Finding[] {
  const { bavail, bsize } = statfsSync(dirname(file))
  const free = bavail * bsize
  const detail = `${bytesText(free)} free, ${bytesText(sizeOf(file))} used`
  const todo = `free some space on the disk of ${file}; until then, deliveries that do not fit are refused`
  if (free < FREE_AT_LEAST + sizeOf(`${file}-wal`)) return [fail('disk', detail, todo)]
  return [free < FREE_BETTER ? warn('disk', detail, todo) : ok('disk', detail)]
}

/** Checks the size of the write-ahead log. */
export function checkLog(file: string): readonly Finding[] {
  const size = sizeOf(`${file}-wal`)
  const detail = `the write-ahead log is ${bytesText(size)}`
  if (size <= WAL_AT_MOST) return [ok('log', detail)]
  return [warn('log', detail, 'a process keeps the database open: end it, or restart the daemon')]
}

/** Allows for the duration of a backup, and one retry. */
const LATE = 1.5
const LATE_AFTER_MS = 3_600_000

/** Checks that backups are made as often as the config says. */
export async function checkBackup({ backup, database }: Config, now: number): Promise<readonly Finding[]> {
  if (database.postgres !== undefined)
    return [ok('backup', 'made with PostgreSQL tools, which this check can’t see')]
  if (backup === null) {
    return [ok('backup', 'none are scheduled; `latchkey backup` creates one')]
  }
  const { folder } = backup
  const newestAt = orRefusal(() => newestBackupAt(folder, now))
  if (newestAt instanceof Error) {
    const fix = 'set backup.folder to a folder that the daemon may read and write, or can create'
    return [fail('backup', `none can be made: ${newestAt.message}`, fix)]
  }
  const todo = 'the daemon makes them while it runs; its log says why one failed'
  if (newestAt === null) return [warn('backup', `none in ${folder} yet`, todo)]
  const age = now - newestAt
  const due =
    backup.schedule === undefined
      ? `every ${durationText(backup.everyMs)}`
      : `at the times of ${JSON.stringify(backup.schedule)} (${backup.timezone})`
  const detail = `the newest is ${durationText(age)} old, and one is due ${due}`
  return [(await isBackupLate(backup, newestAt, now)) ? fail('backup', detail, todo) : ok('backup', detail)]
}

async function isBackupLate(times: BackupTimes, newestAt: number, now: number): Promise<boolean> {
  if (times.schedule === undefined) return now - newestAt > LATE * times.everyMs
  const { schedule: expression, timezone } = times
  return isOverdue({ expression, timezone }, newestAt, now - LATE_AFTER_MS)
}

/** The path of the newest backup; null if there is none, or the folder can't be read. */
export function newestBackup({ backup }: Config, now: number): string | null {
  if (backup === null) return null
  const newestAt = orRefusal(() => newestBackupAt(backup.folder, now))
  return newestAt === null || newestAt instanceof Error ? null : backupFileAt(backup.folder, newestAt)
}

/** The system's reason if the folder can't be read, or is not one; any other error is a bug. */
function orRefusal<Answer>(ask: () => Answer): Answer | Error {
  try {
    return ask()
  } catch (error) {
    if (error instanceof Error && isExplained(error)) return error
    throw error
  }
}
