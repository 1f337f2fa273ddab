import type { Kysely } from 'kysely'
import type { Config } from '../../config/types.js'
import { isExplained } from '../../errors.js'
import { createBackupFolder } from '../../store/backup-folder.js'
import { newestSeq } from '../../store/event-walk.js'
import { eventsEverStoredIn } from '../../store/events-ever-stored.js'
import type { Database } from '../../store/schema.js'
import { counted, durationText } from './amounts.js'
import { type Finding, fail, ok, warn } from './finding.js'

/** A backup takes its time, and one that failed is tried again. */
const LATE = 1.5

/** Whether backups are made as often as the config says. */
export function checkBackup({ backup }: Config, now: number): readonly Finding[] {
  if (backup === null) {
    return [ok('backup', 'none are scheduled; `latchkey backup` makes one')]
  }
  const { folder, everyMs, keep } = backup
  const newestAt = orRefusal(() => createBackupFolder(folder, keep).newestAt(now))
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

/** Whether the newest backup knows of events that the database does not; told only where it does. */
export async function checkLost(
  db: Kysely<Database>,
  config: Config,
  now: number,
): Promise<readonly Finding[]> {
  const file = newestBackup(config, now)
  if (file === null) return []
  const known = eventsEverStoredIn(file) ?? 0
  const stored = await newestSeq(db)
  if (known <= stored) return []
  const detail = `${file} knows ${counted(known, 'event')}, the database ${stored}`
  return [warn('lost', detail, 'if an older or a new database took its place by mistake: latchkey restore')]
}

/** The path of the newest backup; null where there is none, or the folder can't be read. */
export function newestBackup({ backup }: Config, now: number): string | null {
  if (backup === null) return null
  const folder = createBackupFolder(backup.folder, backup.keep)
  const newestAt = orRefusal(() => folder.newestAt(now))
  return newestAt === null || newestAt instanceof Error ? null : folder.fileOf(newestAt)
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
