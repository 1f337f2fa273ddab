import { realpathSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/schema.js'
import { erasureListOf, readErasureList } from '../people/erasure-list.js'
import { loadErasedIds, loadUnfinishedErasures } from '../store/erasures.js'
import {
  nextAgingBodyAt,
  oldestBodyAt,
  readWaitingBodies,
  type WaitingBodies,
} from '../store/expire-bodies.js'
import { ofNewer, readJob } from '../store/recompute.js'
import type { Db } from '../store/schema.js'
import { loadPolicy } from '../store/settings.js'
import { counted, durationText, type Finding, ok, warn } from './finding.js'

/** Checks that the configured policy is in force, and that no rebuild is unfinished. */
export async function checkPolicy(
  db: Db,
  { policy }: Config,
  isRebuilding: boolean,
): Promise<readonly Finding[]> {
  const inForce = await loadPolicy(db)
  const diff = 'see whose access would change: `latchkey policy diff`'
  const own =
    inForce === null || isDeepStrictEqual(inForce, policy)
      ? ok('policy', 'the configured one is in force')
      : warn('policy', 'the configured one is not in force', diff)
  const job = await readJob(db)
  if (job === 'newer') return [own, warn('rebuild', ofNewer().message, null)]
  if (job === null || job.endpoints !== null) return [own]
  const done = `${job.reached} of ${job.newest} events done`
  if (isRebuilding) return [own, ok('rebuild', `under way, ${done}`)]
  const [what, byItself] = job.isMoving
    ? ['interrupted while sources moved to the policy in force', '; the daemon continues it when it starts']
    : ['interrupted', '']
  return [own, warn('rebuild', `${what}, ${done}`, `continue it with \`latchkey rebuild\`${byItself}`)]
}

/** The daemon removes expired bodies every minute. */
const RETENTION_LATE_MS = 86_400_000

/**
 * Checks that erasures are done, and that old bodies are removed.
 * @param isServed whether a process uses the database
 */
export async function checkPrivacy(
  db: Db,
  { retention, database }: Pick<Config, 'retention' | 'database'>,
  isServed: boolean,
  now: number,
): Promise<readonly Finding[]> {
  const ages = { oldestAt: await oldestBodyAt(db), nextAt: await nextAgingBodyAt(db) }
  const waiting = retention === null ? [] : checkWaiting(await readWaitingBodies(db), now)
  const list = database.postgres === undefined ? erasureListOf(realpathSync(database.file)) : null
  return [await checkErasures(db, list, isServed), checkBodies(ages, retention, now), ...waiting]
}

/**
 * Checks that all erasures are finished, and on the list beside the database, which outlasts it.
 * @param list null: there is none
 */
async function checkErasures(db: Db, list: string | null, isServed: boolean): Promise<Finding> {
  const start = isServed ? 'restart the daemon' : 'start the daemon'
  const listed = list === null ? null : readErasureList(list)
  const erased = [...(await loadErasedIds(db))].flatMap(([environment, ids]) =>
    [...ids].map((id) => `${environment} ${id}`),
  )
  const onList = new Set(
    listed?.erasures.map(({ environment, customerId }) => `${environment} ${customerId}`),
  )
  if (list !== null && listed === null && erased.length > 0) {
    return warn('erasures', `the list of erasures is missing: ${list}`, `${start}, which writes it again`)
  }
  if (listed !== null && listed.unreadable > 0) {
    const detail = `${counted(listed.unreadable, 'line')} of ${list} can’t be read`
    return warn('erasures', detail, 'replace the list with a good copy, or remove those lines')
  }
  if (list !== null && (erased.length !== onList.size || !erased.every((key) => onList.has(key)))) {
    return warn(
      'erasures',
      `${list} and the database have different erasures`,
      `${start}, which makes both the same`,
    )
  }
  const unfinished = (await loadUnfinishedErasures(db)).length
  if (unfinished > 0 && !isServed) {
    const detail = `${counted(unfinished, 'erasure')} not finished`
    return warn('erasures', detail, 'start the daemon, or run `latchkey erase` again')
  }
  return ok(
    'erasures',
    erased.length === 0
      ? 'none'
      : `${erased.length}${list === null ? '' : ', all on the list beside the database'}`,
  )
}

/** Bodies are removed in the order of storing: an import may have brought older ones than the next one. */
function checkBodies(
  { oldestAt, nextAt }: { readonly oldestAt: number | null; readonly nextAt: number | null },
  retention: Config['retention'],
  now: number,
): Finding {
  if (oldestAt === null) return ok('bodies', 'none')
  const age = (at: number): string => durationText(Math.max(0, now - at))
  const oldest = `the oldest arrived ${age(oldestAt)} ago`
  if (retention === null) return ok('bodies', `${oldest}; they are kept for ever`)
  const hasOlder = nextAt !== null && nextAt > oldestAt
  const detail = hasOlder ? `${oldest}, the next to be removed arrived ${age(nextAt)} ago` : oldest
  const isLate = nextAt !== null && now - nextAt > retention.bodiesAfterMs + RETENTION_LATE_MS
  if (!isLate)
    return ok('bodies', `${detail}; they are removed after ${durationText(retention.bodiesAfterMs)}`)
  const todo = 'keep the daemon running, and see its log'
  return warn(
    'bodies',
    `${detail}, and should have been removed after ${durationText(retention.bodiesAfterMs)}`,
    todo,
  )
}

/** Only reported if there are any: retention skips them until they take effect. */
function checkWaiting({ count, oldestAt }: WaitingBodies, now: number): readonly Finding[] {
  if (oldestAt === null) return []
  const age = durationText(Math.max(0, now - oldestAt))
  const detail = `${counted(count, 'event')} older than that held or quarantined, the oldest for ${age}`
  return [warn('kept bodies', detail, 'see which: latchkey events list --disposition held, or quarantined')]
}
