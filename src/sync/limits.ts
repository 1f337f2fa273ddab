import type { Failure } from '../store/memberships.js'
import { type ActionRequiredError, RetryableError } from './platform.js'
import type { AdapterName, SyncTarget } from './target.js'

/** A failing platform is called again within a minute, and by one call only. */
const BACK_OFF: BackOff = { first: 1_000, most: 60_000 }

/** This many unanswered calls in a row mean that the platform is down, whatever their targets. */
const MAX_UNANSWERED = 5

/** The scope of a limit: a whole platform, or one target of it. */
export type Scope = Pick<SyncTarget, 'adapter' | 'target'>

/** Whether a platform, or one target of it, may be called. */
export interface CallState {
  /** `stopped`: no call until somebody fixes the `reason`, and `run` or `resume` tries again. */
  readonly state: 'ok' | 'limited' | 'stopped'
  /** If limited: no call before this, in epoch milliseconds. */
  readonly until: number | null
  readonly reason: Failure | null
}

/** Instants are epoch milliseconds. */
interface Limit {
  readonly since: number
  readonly until: number
  readonly failures: number
  readonly failure: Failure
}

export type Gate = ReturnType<typeof createGate>

/**
 * Decides whether calls may be made, from the platforms' answers. Setting the clock back does not lengthen a limit.
 * @param random from 0 up to 1
 */
export function createGate(random: () => number) {
  /** By platform name or target key. */
  const limits = new Map<string, Limit>()
  const stops = new Map<string, Failure>()
  const unanswered = new Map<AdapterName, number>()

  function limitAt(name: string, now: number): Limit | undefined {
    const begun = limits.get(name)
    if (begun === undefined || now >= begun.since) return begun
    // The clock was set back: restart the wait, so that it is neither cut short nor lasts until the clock catches up.
    const known = { ...begun, since: now, until: now + (begun.until - begun.since) }
    limits.set(name, known)
    return known
  }

  /**
   * Allows no call of a platform or target before `notBefore`, nor before its back-off ends.
   * @returns whether no limit was in force before
   */
  function limited(name: string, notBefore: number, failure: Failure, now: number): boolean {
    const known = limitAt(name, now)
    // Calls in flight together fail together: that is one failure.
    const isNew = known === undefined || known.until <= now
    const failures = (known?.failures ?? 0) + (isNew ? 1 : 0)
    const backOff = isNew ? now + backOffMs(failures, BACK_OFF, random()) : 0
    const until = Math.max(known?.until ?? 0, notBefore, backOff)
    limits.set(name, { since: now, until, failures, failure })
    return isNew
  }

  /** The platform has answered, even if only to refuse this call. */
  function answered({ adapter, target }: Scope, now: number): void {
    unanswered.set(adapter, 0)
    // An answer to a call made before the limit says nothing about the limit.
    for (const name of [adapter, target]) if ((limits.get(name)?.until ?? 0) <= now) limits.delete(name)
  }

  const isStopped = ({ adapter, target }: Scope) => stops.has(adapter) || stops.has(target)

  return {
    /** `probe`: a limit has just ended, and one call may test whether the platform works again. */
    permit(scope: Scope, now: number): 'allowed' | 'probe' | 'blocked' {
      const known = [limitAt(scope.adapter, now), limitAt(scope.target, now)].filter(
        (one) => one !== undefined,
      )
      if (isStopped(scope) || known.some(({ until }) => until > now)) return 'blocked'
      return known.length === 0 ? 'allowed' : 'probe'
    },
    /** When the next call may be made; null: not until somebody fixes the problem. */
    opensAt(scope: Scope): number | null {
      if (isStopped(scope)) return null
      return Math.max(limits.get(scope.adapter)?.until ?? 0, limits.get(scope.target)?.until ?? 0)
    },
    limited,
    answered,
    /**
     * Records a failed call.
     * @returns whether this failure blocks calls that were allowed before
     */
    failed({ adapter, target }: Scope, error: RetryableError | ActionRequiredError, now: number): boolean {
      const { code, message, scope } = error
      const name = scope === 'target' ? target : adapter
      const failure = { code, message }
      if (error instanceof RetryableError) {
        if (scope !== 'call') return limited(name, error.notBefore ?? 0, failure, now)
        const count = (unanswered.get(adapter) ?? 0) + 1
        unanswered.set(adapter, count)
        return (count >= MAX_UNANSWERED || limits.has(adapter)) && limited(name, 0, failure, now)
      }
      if (scope === 'call') answered({ adapter, target }, now)
      if (scope === 'call' || stops.has(name)) return false
      stops.set(name, failure)
      return true
    },
    /** Allows stopped scopes again; limits stay. */
    reopen: () => stops.clear(),
    stateOf(name: string): CallState {
      const stop = stops.get(name)
      if (stop !== undefined) return { state: 'stopped', until: null, reason: stop }
      const known = limits.get(name)
      if (known === undefined) return { state: 'ok', until: null, reason: null }
      return { state: 'limited', until: known.until, reason: known.failure }
    },
  }
}

/** Milliseconds. */
export interface BackOff {
  readonly first: number
  readonly most: number
}

/** The minimum wait, whatever the random part: a failed call is never repeated at once. */
const LEAST_MS = 100

/**
 * The wait after the nth failure in a row, in milliseconds: random, up to a bound that doubles each time, so that
 * calls that failed together are not retried together.
 * @param random from 0 up to 1
 */
export function backOffMs(failures: number, { first, most }: BackOff, random: number): number {
  const bound = Math.min(most, first * 2 ** (failures - 1))
  return Math.max(LEAST_MS, Math.round(bound * random))
}
