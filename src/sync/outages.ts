import type { Logger } from 'pino'
import { PLATFORMS } from '../provider/accounts.js'
import type { AdapterName } from './target.js'

/** A destination of calls: a platform, or an address of the outbound webhooks by its id. */
export type Called = AdapterName | `webhook:${string}`

export function isPlatform(name: Called): name is AdapterName {
  return !name.startsWith('webhook:')
}

/** Shorter failures pass by themselves, such as a receiver that restarts. */
const NOTICED_AFTER_MS = 60_000

/** What is said of an outage: in a note, in the log as it is noticed, and in the log as it ends. */
export function outageWords(name: Called): Readonly<Record<'down' | 'logged' | 'back', string>> {
  if (!isPlatform(name)) {
    return {
      down: `Delivery to ${name} has been failing`,
      logged: 'webhook delivery is failing; retrying for up to 3 days',
      back: 'webhook delivery works again',
    }
  }
  const { title } = PLATFORMS[name]
  return {
    down: `${title} has been unreachable`,
    logged: `${title} is unreachable; retrying`,
    back: `${title} is reachable again`,
  }
}

export interface Outage {
  readonly platform: Called
  /** When the first call failed, in epoch milliseconds. */
  readonly since: number
  /** For people: how the newest call failed. */
  readonly reason: string
}

/** Called at the end of every real call. */
export interface Reach {
  answered(): void
  failed(reason: string): void
}

export type Outages = ReturnType<typeof createOutages>

/**
 * Detects outages: every call has failed for a minute, and more than one. Logs one line when it detects an outage and
 * one when a call succeeds again. Kept in memory: after a restart it detects the outage again, a minute later.
 * @param clock epoch milliseconds
 */
export function createOutages(clock: () => number, log: Logger) {
  const failing = new Map<Called, { since: number; calls: number; reason: string; isNoticed: boolean }>()

  /** Detects outages that have lasted long enough by now. */
  function look(): void {
    const now = clock()
    for (const [name, one] of failing) {
      // Setting the clock back must not delay the log line.
      one.since = Math.min(one.since, now)
      if (one.isNoticed || one.calls < 2 || now - one.since < NOTICED_AFTER_MS) continue
      one.isNoticed = true
      const since = new Date(one.since).toISOString()
      log.warn({ platform: name, since, reason: one.reason }, outageWords(name).logged)
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
        log.info({ platform: name, since, outForSeconds }, outageWords(name).back)
      },
    }),
    /** Outages that were logged and are not over. */
    current(): readonly Outage[] {
      look()
      const noticed = [...failing].filter(([, { isNoticed }]) => isNoticed)
      return noticed.map(([platform, { since, reason }]) => ({ platform, since, reason }))
    },
    /** Forgets a destination whose configuration changed. */
    forget: (name: Called) => void failing.delete(name),
  }
}
