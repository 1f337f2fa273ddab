import type { Failure } from '../store/membership.js'
import { type ActionRequiredError, RetryableError } from './platform.js'
import type { AdapterName, SyncTarget } from './target.js'

/** A platform that fails is asked again within a minute, and by one call only. */
const BACK_OFF: BackOff = { first: 1_000, most: 60_000 }

/** This many calls in a row that nobody answered say that the platform is down, whatever each of them concerned. */
const MAX_UNANSWERED = 5

/** Of whom calls are made: all of a platform, or one target of it. */
export type Scope = Pick<SyncTarget, 'adapter' | 'target'>

/** Whether a platform, or one target of it, may be called. */
export interface CallState {
  /** `stopped`: no call until somebody has done what `reason` says, and `run` or `resume` tries again. */
  readonly state: 'ok' | 'limited' | 'stopped'
  /** Where limited: no call before that, in epoch milliseconds. */
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
 * Knows whether calls may be made, by what the platforms have said. No limit lasts longer for a clock that is set back.
 * @param random from 0 up to 1
 */
export function createGate(random: () => number) {
  /** By the platform's name, or the target's key. */
  const limits = new Map<string, Limit>()
  const stops = new Map<string, Failure>()
  const unanswered = new Map<AdapterName, number>()

  function limitAt(name: string, now: number): Limit | undefined {
    const begun = limits.get(name)
    if (begun === undefined || now >= begun.since) return begun
    // The clock was set back: the wait begins again, so that it is neither cut short nor lasts until the clock caught up.
    const known = { ...begun, since: now, until: now + (begun.until - begun.since) }
    limits.set(name, known)
    return known
  }

  /**
   * No call of a platform, or a target, before `notBefore`, nor before its back-off.
   * @returns whether no limit was in force before
   */
  function limited(name: string, notBefore: number, failure: Failure, now: number): boolean {
    const known = limitAt(name, now)
    // Calls that were under way together fail together: that is one failure.
    const isNew = known === undefined || known.until <= now
    const failures = (known?.failures ?? 0) + (isNew ? 1 : 0)
    const backOff = isNew ? now + backOffMs(failures, BACK_OFF, random()) : 0
    const until = Math.max(known?.until ?? 0, notBefore, backOff)
    limits.set(name, { since: now, until, failures, failure })
    return isNew
  }

  /** The platform has answered, if only to refuse this one call. */
  function answered({ adapter, target }: Scope, now: number): void {
    unanswered.set(adapter, 0)
    // The answer to a call that was made before the limit says nothing about it.
    for (const name of [adapter, target]) if ((limits.get(name)?.until ?? 0) <= now) limits.delete(name)
  }

  const isStopped = ({ adapter, target }: Scope) => stops.has(adapter) || stops.has(target)

  return {
    /** `probe`: a limit has passed, and one call is to find out whether it is over. */
    passage(scope: Scope, now: number): 'open' | 'probe' | 'closed' {
      const known = [limitAt(scope.adapter, now), limitAt(scope.target, now)].filter(
        (one) => one !== undefined,
      )
      if (isStopped(scope) || known.some(({ until }) => until > now)) return 'closed'
      return known.length === 0 ? 'open' : 'probe'
    },
    /** When the next call may be made; null: not before somebody has done something. */
    opensAt(scope: Scope): number | null {
      if (isStopped(scope)) return null
      return Math.max(limits.get(scope.adapter)?.until ?? 0, limits.get(scope.target)?.until ?? 0)
    },
    limited,
    answered,
    /**
     * A call has failed.
     * @returns whether calls were allowed before, and are not now
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
    /** What was stopped is tried again; limits stay. */
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

/** No wait is shorter, however the dice fall: a failing call is never repeated at once. */
const LEAST_MS = 100

/**
 * How long to wait after the nth failure in a row, in milliseconds: at random up to a bound that doubles each time,
 * so that what failed together is not tried together.
 * @param random from 0 up to 1
 */
export function backOffMs(failures: number, { first, most }: BackOff, random: number): number {
  const bound = Math.min(most, first * 2 ** (failures - 1))
  return Math.max(LEAST_MS, Math.round(bound * random))
}
