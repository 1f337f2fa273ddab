import type { Failure } from '../store/membership.js'
import type { FailureScope } from './platform.js'
import type { CallState } from './sync.js'
import type { AdapterName } from './target.js'

/** A platform that fails is asked again within a minute, and by one call only. */
const BACK_OFF: BackOff = { first: 1_000, most: 60_000 }

/** This many calls in a row that nobody answered say that the platform is down, whatever each of them concerned. */
const MAX_UNANSWERED = 5

/** Of whom calls are made: all of a platform, or one target of it. */
export interface Scope {
  readonly platform: AdapterName
  /** `targetKey` */
  readonly target: string
}

/**
 * Whether calls may be made, by what the platforms have said. `probe`: a limit has passed, and one call is to find out
 * whether it is over. No limit lasts longer for a clock that is set back, as far as `passage` has seen it.
 */
export interface Gate {
  /** @param now epoch milliseconds */
  passage(scope: Scope, now: number): 'open' | 'probe' | 'closed'
  /** When the next call may be made, in epoch milliseconds; null: not before somebody has done something. */
  opensAt(scope: Scope): number | null
  /**
   * No call before `notBefore`; null: before the back-off says.
   * @returns whether no limit stood before, and one does now
   */
  limited(scope: Scope, width: FailureScope, notBefore: number | null, failure: Failure, now: number): boolean
  /** @returns whether it was not so before */
  stopped(scope: Scope, width: FailureScope, failure: Failure): boolean
  /** The platform has answered, if only to refuse this one call. */
  answered(scope: Scope, now: number): void
  /** What was stopped is tried again; limits stay. */
  reopen(): void
  stateOf(name: string): CallState
}

interface Limit extends Wait {
  readonly failures: number
  readonly failure: Failure
}

/** @param random from 0 up to 1 */
export function createGate(random: () => number): Gate {
  /** By the platform's name, or the target's key. */
  const limits = new Map<string, Limit>()
  const stops = new Map<string, Failure>()
  const unanswered = new Map<AdapterName, number>()

  const limitAt = (name: string, now: number): Limit | undefined => {
    const begun = limits.get(name)
    if (begun === undefined) return undefined
    const known = waitAsOf(begun, now)
    limits.set(name, known)
    return known
  }
  const limit = (name: string, notBefore: number, failure: Failure, now: number): boolean => {
    const known = limitAt(name, now)
    // Calls that were under way together fail together: that is one failure.
    const isNew = known === undefined || known.until <= now
    const failures = (known?.failures ?? 0) + (isNew ? 1 : 0)
    const backOff = isNew ? now + backOffMs(failures, BACK_OFF, random()) : 0
    const until = Math.max(known?.until ?? 0, notBefore, backOff)
    limits.set(name, { since: now, until, failures, failure })
    return isNew
  }
  const isStopped = ({ platform, target }: Scope) => stops.has(platform) || stops.has(target)

  return {
    passage(scope, now) {
      const known = [limitAt(scope.platform, now), limitAt(scope.target, now)].filter(
        (one) => one !== undefined,
      )
      if (isStopped(scope) || known.some(({ until }) => until > now)) return 'closed'
      return known.length === 0 ? 'open' : 'probe'
    },
    opensAt(scope) {
      if (isStopped(scope)) return null
      return Math.max(limits.get(scope.platform)?.until ?? 0, limits.get(scope.target)?.until ?? 0)
    },
    limited(scope, width, notBefore, failure, now) {
      switch (width) {
        case 'platform':
          return limit(scope.platform, notBefore ?? 0, failure, now)
        case 'target':
          return limit(scope.target, notBefore ?? 0, failure, now)
        case 'call': {
          const count = (unanswered.get(scope.platform) ?? 0) + 1
          unanswered.set(scope.platform, count)
          if (count < MAX_UNANSWERED && !limits.has(scope.platform)) return false
          return limit(scope.platform, 0, failure, now)
        }
        default:
          return width satisfies never
      }
    },
    stopped(scope, width, failure) {
      const name = width === 'platform' ? scope.platform : scope.target
      const isNew = !stops.has(name)
      stops.set(name, failure)
      return isNew
    },
    answered(scope, now) {
      unanswered.set(scope.platform, 0)
      // The answer to a call that was made before the limit says nothing about it.
      for (const name of [scope.platform, scope.target]) {
        if ((limits.get(name)?.until ?? 0) <= now) limits.delete(name)
      }
    },
    reopen: () => stops.clear(),
    stateOf(name) {
      const stop = stops.get(name)
      if (stop !== undefined) return { kind: 'stopped', ...stop }
      const known = limits.get(name)
      if (known === undefined) return { kind: 'ok' }
      return { kind: 'limited', until: known.until, ...known.failure }
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

/** A time to wait, by the wall clock. Instants are epoch milliseconds. */
export interface Wait {
  readonly since: number
  readonly until: number
}

/**
 * The wait, as of `now`. A clock that was set back to before it began must not make it last until the clock has caught
 * up: then it begins again, and is never cut short.
 */
export function waitAsOf<Of extends Wait>(wait: Of, now: number): Of {
  return now < wait.since ? { ...wait, since: now, until: now + (wait.until - wait.since) } : wait
}
