import { realpathSync } from 'node:fs'
import type { Kysely } from 'kysely'
import { loadUnsettled } from '../../ingest/settle-erasures.js'
import { loadDoubt } from '../../store/erasure-doubt.js'
import {
  countUnreadable,
  DOUBT,
  erasureFileOf,
  erasureKey,
  isWholeList,
  readDoubt,
  readErasures,
} from '../../store/erasure-file.js'
import { loadErasureActs } from '../../store/manual-events.js'
import type { Database } from '../../store/schema.js'
import { counted, instantText } from './amounts.js'
import { type Finding, warn } from './finding.js'

const WHAT = 'erasure list'

/**
 * Whether the list beside the database, which outlasts it, tells of all who were erased, and the database knows them;
 * told only where not.
 *
 * @param isServed whether a daemon runs: it makes both tell the same, but at its start alone
 */
export async function checkErasureList(
  db: Kysely<Database>,
  databaseFile: string,
  isServed: boolean,
): Promise<readonly Finding[]> {
  const list = erasureFileOf(realpathSync(databaseFile))
  const start = isServed ? 'restart the daemon' : 'start the daemon'
  const doubted = await checkDoubt(db, list)
  const unsettled = await checkUnsettled(db, list, start)
  return [...doubted, ...unsettled, ...(await checkLines(db, list, start))]
}

/** After a restore that could not ask for all. */
async function checkDoubt(db: Kysely<Database>, list: string): Promise<readonly Finding[]> {
  if (isWholeList(list)) return []
  // Where the list is gone, the next erasure, or start, begins another with such a line.
  const before = readDoubt(list) ?? (await loadDoubt(db))
  if (before === null) return []
  const detail = `whoever was erased before ${instantText(before)} may be back since a restore: there is no whole list`
  return [warn(WHAT, detail, `erase them again, and then remove the lines with ${DOUBT} from ${list}`)]
}

async function checkUnsettled(
  db: Kysely<Database>,
  list: string,
  start: string,
): Promise<readonly Finding[]> {
  const unsettled = await loadUnsettled(db, list)
  if (unsettled.length === 0) return []
  const detail = `${counted(unsettled.length, 'erasure')} on ${list} unknown to the database`
  return [warn(WHAT, detail, `${start}, which erases them again`)]
}

async function checkLines(db: Kysely<Database>, list: string, start: string): Promise<readonly Finding[]> {
  const writesDown = `${start}, which writes down whom this database knows`
  const unreadable = countUnreadable(list) ?? 0
  if (unreadable > 0) {
    const detail = `${counted(unreadable, 'line')} of ${list} can’t be read`
    return [warn(WHAT, detail, `${writesDown}, and remove those lines`)]
  }
  const acts = await loadErasureActs(db)
  const listed = new Set(readErasures(list).map(erasureKey))
  const missing = acts.filter((act) => !listed.has(erasureKey(act)))
  if (missing.length === 0) return []
  return [warn(WHAT, `${counted(missing.length, 'erasure')} missing in ${list}`, writesDown)]
}
