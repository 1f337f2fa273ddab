import { realpathSync } from 'node:fs'
import type { Kysely } from 'kysely'
import { countUnreadable, erasureFileOf, erasureKey, readErasures } from '../../store/erasure-file.js'
import { loadErasureActs } from '../../store/manual-events.js'
import type { Database } from '../../store/schema.js'
import { counted } from './amounts.js'
import { type Finding, warn } from './finding.js'

/** Whether the list beside the database, which outlasts it, tells of all who were erased; told only where it does not. */
export async function checkErasureList(
  db: Kysely<Database>,
  databaseFile: string,
): Promise<readonly Finding[]> {
  const list = erasureFileOf(realpathSync(databaseFile))
  const unreadable = countUnreadable(list) ?? 0
  if (unreadable > 0) {
    const todo =
      'restart the daemon, which writes down again whom this database knows, and remove those lines'
    return [warn('erasure list', `${counted(unreadable, 'line')} of ${list} can’t be read`, todo)]
  }
  const listed = new Set(readErasures(list).map(erasureKey))
  const missing = (await loadErasureActs(db)).filter((act) => !listed.has(erasureKey(act)))
  if (missing.length === 0) return []
  const detail = `${counted(missing.length, 'erasure')} missing in ${list}`
  return [warn('erasure list', detail, 'restart the daemon, which writes down whom this database knows')]
}
