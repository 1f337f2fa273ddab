import type { Logger } from 'pino'
import type { LogEnd } from '../store/changes.js'

/** How soon readers look again for changes that they could not see yet. */
const AGAIN_MS = 50

/** The longest wait between looks at a log that may have gone back as a reader looked: each is twice the last. */
const LATEST_MS = 1_600

/** No transaction of Latchkey's takes so long. */
const LONG_MS = 60_000

export interface LogWatchDeps {
  readonly log: Pick<Logger, 'warn'>
  readonly readEnd: () => Promise<LogEnd>
  /** Has readers of the change log look at it. */
  readonly wake: () => void
  /** Milliseconds of a clock that nobody can set. */
  readonly elapsed: () => number
  readonly later: (run: () => void, ms: number) => NodeJS.Timeout
}

const HELD_UP =
  'the change log is held up: a transaction of another program has been writing to this database for a minute. Streams, ' +
  'webhooks, roles and groups wait for it: find it in pg_stat_activity by its backend_xid, and end it'

/**
 * Wakes the readers of a change log that ends before the oldest transaction under way: again, as long as it lacks
 * committed changes, or lacked them perhaps as a reader looked. A transaction that ends without a commit tells nobody.
 */
export function createLogWatch({ readEnd, wake, log, elapsed, later }: LogWatchDeps) {
  let isLooking = false
  let isAsked = false
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  let pauseMs = AGAIN_MS
  /** Where the log has ended since then, though it lacks changes; null: it lacks none. */
  let heldUp: { readonly at: number; readonly since: number; isWarned: boolean } | null = null

  async function look(): Promise<void> {
    isLooking = true
    while (isAsked && !isStopped) {
      isAsked = false
      // Before they look: what is missing then may be there when they do.
      const end = await readEnd().catch(() => null)
      wake()
      noteEnd(end)
      if (end !== null && !isStopped) lookAgainAt(end)
    }
    isLooking = false
  }

  function lookAgainAt({ isBehind, mayGoBack }: LogEnd): void {
    clearTimeout(timer)
    if (!isBehind && !mayGoBack) return
    if (isBehind) pauseMs = AGAIN_MS
    timer = later(ask, pauseMs)
    pauseMs = Math.min(pauseMs * 2, LATEST_MS)
  }

  function noteEnd(end: LogEnd | null): void {
    if (!end?.isBehind) {
      heldUp = null
      return
    }
    if (heldUp?.at !== end.cursor) heldUp = { at: end.cursor, since: elapsed(), isWarned: false }
    if (heldUp.isWarned || elapsed() - heldUp.since < LONG_MS) return
    heldUp.isWarned = true
    log.warn(HELD_UP)
  }

  function ask(): void {
    isAsked = true
    if (!isLooking) void look()
  }

  return {
    /** Something was committed, here or by another process. Cheap, and never throws. */
    note(): void {
      pauseMs = AGAIN_MS
      ask()
    },
    async stop(): Promise<void> {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
