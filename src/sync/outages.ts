import type { Logger } from 'pino'
import type { AdapterName } from './target.js'

/** What is called from here: a platform, or the receiver of the outbound webhook. */
export type Called = AdapterName | 'webhook'

/** Anything shorter passes by itself, such as a receiver that restarts. */
const NOTICED_AFTER_MS = 60_000
/** A failing platform that nothing else calls is asked again after this long, to learn whether it is back. */
const PROBE_AFTER_MS = 30_000

const WORDS: Readonly<Record<Called, { readonly down: string; readonly back: string }>> = {
  discord: { down: 'Discord is unreachable; retrying', back: 'Discord is reachable again' },
  telegram: { down: 'Telegram is unreachable; retrying', back: 'Telegram is reachable again' },
  webhook: {
    down: 'webhook delivery is failing; retrying for up to 3 days',
    back: 'webhook delivery works again',
  },
}

export interface Outage {
  readonly name: Called
  /** When the first call failed, in epoch milliseconds; null: not known. */
  readonly since: number | null
  /** For people: how the newest call failed. */
  readonly reason: string
}

/** Told how each call ended that was really made. */
export interface Reach {
  answered(): void
  failed(reason: string): void
}

/**
 * Knows who is unreachable: every call has failed for a minute, and more than one. Logs one line when that is noticed
 * and one when a call succeeds again. It is kept in memory: a restart notices an outage again, a minute later.
 */
export interface Outages {
  of(name: Called): Reach
  /** Those noticed and not over. */
  current(): readonly Outage[]
  /** Notices what has lasted long enough by now. */
  look(): void
  /** Whether calls fail, and none was made lately. */
  isProbeDue(name: Called): boolean
  /** When to look or probe next, in epoch milliseconds; null: not by itself. */
  nextAt(): number | null
  /** It is reached in another way from now on. */
  forget(name: Called): void
}

export interface OutagesDeps {
  /** How many changes wait for it. */
  readonly waiting: (name: Called) => Promise<number>
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

interface Failing {
  since: number
  lastAt: number
  calls: number
  reason: string
  isNoticed: boolean
}

export function createOutages({ waiting, clock, log }: OutagesDeps): Outages {
  const failing = new Map<Called, Failing>()
  /** One line after the other, though the first has something to read before. */
  let lines: Promise<void> = Promise.resolve()

  function look(): void {
    const now = clock()
    for (const [name, one] of failing) {
      // A clock that was set back must not put off the notice.
      one.since = Math.min(one.since, now)
      one.lastAt = Math.min(one.lastAt, now)
      if (one.isNoticed || one.calls < 2 || now - one.since < NOTICED_AFTER_MS) continue
      one.isNoticed = true
      const { since, reason } = one
      lines = lines.then(async () => {
        const count = await waiting(name).catch(() => null)
        log.warn(
          {
            platform: name,
            since: new Date(since).toISOString(),
            reason,
            ...(count !== null && { waiting: count }),
          },
          WORDS[name].down,
        )
      })
    }
  }

  function failed(name: Called, reason: string): void {
    const now = clock()
    const known = failing.get(name) ?? { since: now, lastAt: now, calls: 0, reason, isNoticed: false }
    failing.set(name, { ...known, lastAt: now, calls: known.calls + 1, reason })
    look()
  }

  function answered(name: Called): void {
    const known = failing.get(name)
    failing.delete(name)
    if (known === undefined || !known.isNoticed) return
    const since = new Date(known.since).toISOString()
    const seconds = Math.round(Math.max(0, clock() - known.since) / 1_000)
    lines = lines.then(() => log.info({ platform: name, since, outForSeconds: seconds }, WORDS[name].back))
  }

  return {
    of: (name) => ({ answered: () => answered(name), failed: (reason) => failed(name, reason) }),
    look,
    current() {
      look()
      return [...failing]
        .filter(([, { isNoticed }]) => isNoticed)
        .map(([name, { since, reason }]) => ({ name, since, reason }))
    },
    isProbeDue(name) {
      const known = failing.get(name)
      return known !== undefined && clock() - known.lastAt >= PROBE_AFTER_MS
    },
    nextAt() {
      const now = clock()
      const times = [...failing.values()]
        .flatMap(({ since, lastAt }) => [since + NOTICED_AFTER_MS, lastAt + PROBE_AFTER_MS])
        .filter((at) => at > now)
      return times.length === 0 ? null : Math.min(...times)
    },
    forget: (name) => void failing.delete(name),
  }
}
