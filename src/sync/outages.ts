import type { Logger } from 'pino'
import type { AdapterName } from './target.js'

/** What is called from here: a platform, or the receiver of the outbound webhook. */
export type Called = AdapterName | 'webhook'

/** Anything shorter passes by itself, such as a receiver that restarts. */
const NOTICED_AFTER_MS = 60_000

const WORDS: Readonly<Record<Called, { readonly down: string; readonly back: string }>> = {
  discord: { down: 'Discord is unreachable; retrying', back: 'Discord is reachable again' },
  telegram: { down: 'Telegram is unreachable; retrying', back: 'Telegram is reachable again' },
  webhook: {
    down: 'webhook delivery is failing; retrying for up to 3 days',
    back: 'webhook delivery works again',
  },
}

export interface Outage {
  readonly platform: Called
  /** When the first call failed, in epoch milliseconds. */
  readonly since: number
  /** For people: how the newest call failed. */
  readonly reason: string
}

/** Called with the end of each call that was really made. */
export interface Reach {
  answered(): void
  failed(reason: string): void
}

export type Outages = ReturnType<typeof createOutages>

/**
 * Knows who is unreachable: every call has failed for a minute, and more than one. Logs one line when that is noticed
 * and one when a call succeeds again. It is kept in memory: a restart notices an outage again, a minute later.
 * @param clock epoch milliseconds
 */
export function createOutages(clock: () => number, log: Logger) {
  const failing = new Map<Called, { since: number; calls: number; reason: string; isNoticed: boolean }>()

  /** Notices what has lasted long enough by now. */
  function look(): void {
    const now = clock()
    for (const [name, one] of failing) {
      // A clock that was set back must not put off the notice.
      one.since = Math.min(one.since, now)
      if (one.isNoticed || one.calls < 2 || now - one.since < NOTICED_AFTER_MS) continue
      one.isNoticed = true
      const since = new Date(one.since).toISOString()
      log.warn({ platform: name, since, reason: one.reason }, WORDS[name].down)
    }
  }

  return {
    look,
    of: (name: Called): Reach => ({
      failed(reason) {
        const known = failing.get(name) ?? { since: clock(), calls: 0, isNoticed: false }
        failing.set(name, { ...known, calls: known.calls + 1, reason })
        look()
      },
      answered() {
        const known = failing.get(name)
        failing.delete(name)
        if (known === undefined || !known.isNoticed) return
        const since = new Date(known.since).toISOString()
        const outForSeconds = Math.round(Math.max(0, clock() - known.since) / 1_000)
        log.info({ platform: name, since, outForSeconds }, WORDS[name].back)
      },
    }),
    /** Those noticed and not over. */
    current(): readonly Outage[] {
      look()
      const noticed = [...failing].filter(([, { isNoticed }]) => isNoticed)
      return noticed.map(([platform, { since, reason }]) => ({ platform, since, reason }))
    },
    /** It is reached in another way from now on. */
    forget: (name: Called) => void failing.delete(name),
  }
}
