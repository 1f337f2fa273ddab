import type { Kysely } from 'kysely'
import type { Config } from '../../config/types.js'
import { countUnfinishedErasures } from '../../store/erasures.js'
import {
  nextAgingBodyAt,
  oldestBodyAt,
  readWaitingBodies,
  type WaitingBodies,
} from '../../store/expire-bodies.js'
import type { Database } from '../../store/schema.js'
import { counted, durationText } from './amounts.js'
import { type Finding, ok, warn } from './finding.js'

/** Looking through even a large store takes minutes. */
const ERASURE_LONG_MS = 3_600_000

/** The daemon removes what is due every minute. */
const RETENTION_LATE_MS = 86_400_000

/**
 * Whether those who are to be erased are, and whether bytes go when they are old enough.
 * @param isServed whether some process works on the database
 */
export async function checkPrivacy(
  db: Kysely<Database>,
  { retention }: Pick<Config, 'retention'>,
  isServed: boolean,
  now: number,
): Promise<readonly Finding[]> {
  const unfinished = await countUnfinishedErasures(db, now - ERASURE_LONG_MS)
  const ages = { oldestAt: await oldestBodyAt(db), nextAt: await nextAgingBodyAt(db) }
  const waiting = retention === null ? [] : checkWaiting(await readWaitingBodies(db), now)
  return [checkErasures(unfinished, isServed), checkBodies(ages, retention, now), ...waiting]
}

/** Whoever is not erased to the end has no access, and is there still. */
function checkErasures(
  { all, overdue }: { readonly all: number; readonly overdue: number },
  isServed: boolean,
): Finding {
  if (all > 0 && !isServed) {
    const detail = `${counted(all, 'erasure')} not finished, and nothing works on ${all === 1 ? 'it' : 'them'}`
    return warn('erasures', detail, 'start the daemon, or give `latchkey erase` again')
  }
  if (overdue === 0) return ok('erasures', 'none is overdue')
  const todo = 'let the daemon run, and end what reads the database for long, such as a backup'
  return warn('erasures', `${counted(overdue, 'erasure')} begun over an hour ago not finished`, todo)
}

/** Bodies go in the order of storing: an import may have brought older ones than the one whose turn is next. */
function checkBodies(
  { oldestAt, nextAt }: { readonly oldestAt: number | null; readonly nextAt: number | null },
  retention: Config['retention'],
  now: number,
): Finding {
  if (oldestAt === null) return ok('bodies', 'none')
  const age = (at: number): string => durationText(Math.max(0, now - at))
  const oldest = `the oldest came ${age(oldestAt)} ago`
  if (retention === null) return ok('bodies', `${oldest}; they are kept for ever`)
  const hasOlder = nextAt !== null && nextAt > oldestAt
  const detail = hasOlder ? `${oldest}, the next to go ${age(nextAt)} ago` : oldest
  const isLate = nextAt !== null && now - nextAt > retention.bodiesAfterMs + RETENTION_LATE_MS
  if (!isLate) return ok('bodies', `${detail}; they go after ${durationText(retention.bodiesAfterMs)}`)
  const todo = 'let the daemon run, and look into its log'
  return warn('bodies', `${detail}, and should be gone after ${durationText(retention.bodiesAfterMs)}`, todo)
}

/** Told only where there are any: retention passes them over until they count. */
function checkWaiting({ count, oldestAt }: WaitingBodies, now: number): readonly Finding[] {
  if (oldestAt === null) return []
  const age = durationText(Math.max(0, now - oldestAt))
  const detail = `${counted(count, 'event')} older than that held or quarantined, the oldest for ${age}`
  return [warn('kept bodies', detail, 'see which: latchkey events list --disposition held, or quarantined')]
}
