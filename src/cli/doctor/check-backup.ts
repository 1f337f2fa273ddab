import type { Kysely } from 'kysely'
import type { Database } from '../../store/schema.js'
import { getSetting } from '../../store/settings.js'
import { durationText } from './amounts.js'
import { type Finding, ok, warn } from './finding.js'

const OLD_MS = 2 * 86_400_000

/** How old the last backup is; nothing where none was ever made from here. */
export async function checkBackup(db: Kysely<Database>, now: number): Promise<readonly Finding[]> {
  const at = await getSetting(db, 'last_backup_at')
  if (at === null) return []
  const age = Math.max(0, now - Number(at))
  const detail = `the last one is ${durationText(age)} old`
  return [age > OLD_MS ? warn('backup', detail, 'make one, and have it made daily') : ok('backup', detail)]
}
