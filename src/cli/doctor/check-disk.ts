import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Kysely } from 'kysely'
import { countArrivalsSince } from '../../store/deliveries.js'
import { newestSeq } from '../../store/event-walk.js'
import { schemaBegunAt } from '../../store/migrate.js'
import type { Database } from '../../store/schema.js'
import { bytesText } from './amounts.js'
import { type Finding, fail, ok, warn } from './finding.js'

const MB = 1024 * 1024
const DAY_MS = 86_400_000

/** With less than this the next burst of deliveries may not fit. */
const FREE_AT_LEAST = 100 * MB
const FREE_BETTER = 500 * MB
const DAYS_BETTER = 7

/** The daemon cuts its log back to 64 MB once it can: one of several times that is being held open. */
const WAL_AT_MOST = 4 * 64 * MB

/** Whether what is to come fits on the disk: the write-ahead log once more, and what a day brings. */
export async function checkDisk(
  db: Kysely<Database>,
  file: string,
  now: number,
): Promise<readonly Finding[]> {
  const { bavail, bsize } = statfsSync(dirname(file))
  const free = bavail * bsize
  const growth = await dayGrowth(db, file, now)
  const needed = Math.max(FREE_AT_LEAST, sizeOf(`${file}-wal`) + (growth ?? 0))
  const ofDay = growth === null ? '' : `, ${bytesText(growth)} of it by what arrived since yesterday`
  const detail = `${bytesText(free)} free, ${bytesText(sizeOf(file))} used${ofDay}`
  const todo = `make room beside ${file}: what does not fit is refused`
  if (free < needed) return [fail('disk', detail, todo)]
  return [
    free < Math.max(FREE_BETTER, DAYS_BETTER * (growth ?? 0))
      ? warn('disk', detail, todo)
      : ok('disk', detail),
  ]
}

/** How long the write-ahead log has grown. */
export function checkLog(file: string): readonly Finding[] {
  const size = sizeOf(`${file}-wal`)
  const detail = `the write-ahead log has ${bytesText(size)}`
  if (size <= WAL_AT_MOST) return [ok('log', detail)]
  return [warn('log', detail, 'something has the database open for long: end it, or start the daemon again')]
}

/**
 * As many bytes as the events of the last day take, at what an event takes on average with all that follows. Null where
 * the database is younger: imports have brought what is of before it, and what arrived is not of a whole day.
 */
async function dayGrowth(db: Kysely<Database>, file: string, now: number): Promise<number | null> {
  const yesterday = now - DAY_MS
  const begunAt = await schemaBegunAt(db)
  if (begunAt === null || begunAt > yesterday) return null
  const stored = await newestSeq(db)
  return stored === 0 ? 0 : (sizeOf(file) / stored) * (await countArrivalsSince(db, yesterday))
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
