import type { Logger } from 'pino'
import {
  type Failed,
  type Failure,
  type Happening,
  type Membership,
  type MembershipKey,
  membershipKey,
} from '../store/membership.js'
import { type BackOff, backOffMs } from './back-off.js'
import type { Gate, Scope } from './gate.js'
import type { Platform } from './platform.js'
import { ActionRequiredError, RetryableError } from './platform-errors.js'
import type { Target } from './target.js'

/** Of one membership that fails while others do not. */
const BACK_OFF: BackOff = { first: 1_000, most: 15 * 60_000 }

/** A shorter wait is all in a day's work. */
const LONG_WAIT_MS = 60_000

export type DriveResult =
  | 'given'
  | 'taken'
  | 'unchanged'
  | 'failed'
  | 'stopped'
  | 'waiting'
  | 'parked'
  | 'overtaken'

export interface DriveDeps {
  readonly gate: Gate
  /** Commits a step; false: it has nothing to do any more. */
  readonly takeStep: (key: MembershipKey, happening: Happening) => Promise<boolean>
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  /** Told once what was given or taken is written down. @param isRepair it was given before, and got lost */
  readonly onDone: (membership: Membership, action: 'given' | 'taken', isRepair: boolean) => Promise<void>
  readonly log: Logger
}

/** What became of a platform's call. */
type Outcome<Answer> = { readonly answer: Answer } | { readonly error: unknown }

/** What was known before a call, for when the platform refuses it. */
type Known = Failed['undo']

/**
 * Brings the platform to what one membership desires. Before a call that changes something, it is on disk that the
 * call may have been made: a crash at any moment is followed by another call, never by a wrong belief.
 */
export function createDrive(deps: DriveDeps) {
  const { gate, takeStep, clock, random, onDone, log } = deps
  /** Sweeps try again, and meet the same: the code that was told, by membership. */
  const toldParked = new Map<string, string>()

  return async (platform: Platform, membership: Membership, target: Target): Promise<DriveResult> => {
    const scope: Scope = { platform: platform.name, target: membership.target }
    const { accountId } = membership
    let known: Known = null
    let wasBegun = false

    const call = async <Answer>(make: () => Promise<Answer>): Promise<Outcome<Answer>> => {
      try {
        const answer = await make()
        gate.answered(scope, clock())
        return { answer }
      } catch (error) {
        return { error }
      }
    }
    const fail = async (error: unknown): Promise<DriveResult> => {
      const step = judge(error, membership, { scope, known, wasBegun })
      await takeStep(membership, step)
      if (error instanceof ActionRequiredError && error.scope !== 'call') return 'stopped'
      if (step.next.kind === 'retry') return 'failed'
      const result = step.next.mayHeal && membership.desired ? 'waiting' : 'parked'
      tellParked(result, membership, scope, step.failure)
      return result
    }
    const begin = async (action: 'give' | 'take'): Promise<boolean> => {
      wasBegun = await takeStep(membership, { kind: 'begin', action })
      return wasBegun
    }

    if (membership.desired) {
      // Begun and unheard of since: given once more, which does no harm, it is ours for certain.
      if (!(membership.applied === 'unknown' && membership.given)) {
        const seen = await call(() => platform.observe(target, accountId))
        if ('error' in seen) return fail(seen.error)
        if (seen.answer === 'member') {
          await takeStep(membership, { kind: 'found' })
          return 'unchanged'
        }
        known = { applied: 'absent', given: false }
      }
      if (!(await begin('give'))) return 'overtaken'
      const given = await call(() => platform.give(target, accountId))
      if ('error' in given) return fail(given.error)
      await takeStep(membership, { kind: 'gave' })
      toldParked.delete(membershipKey(membership))
      await onDone(membership, 'given', membership.applied === 'member')
      return 'given'
    }
    if (membership.applied === 'member') known = { applied: 'member', given: true }
    if (!(await begin('take'))) return 'overtaken'
    const taken = await call(() => platform.take(target, accountId))
    if ('error' in taken) return fail(taken.error)
    const isGone = taken.answer === 'gone'
    await takeStep(membership, { kind: isGone ? 'gone' : 'took' })
    toldParked.delete(membershipKey(membership))
    if (isGone) return 'unchanged'
    await onDone(membership, 'taken', false)
    return 'taken'
  }

  function tellParked(
    result: 'waiting' | 'parked',
    membership: Membership,
    { platform, target }: Scope,
    { code, message }: Failure,
  ): void {
    const key = membershipKey(membership)
    if (toldParked.get(key) === code) return
    toldParked.set(key, code)
    const { environment, customerId, desired } = membership
    const action = desired ? 'give' : 'take'
    const fields = { environment, customerId, platform, target, action, code, reason: message }
    if (result === 'waiting') log.info(fields, 'membership waits for the customer')
    else log.warn(fields, 'membership parked: action needed')
  }

  function judge(
    error: unknown,
    { desired, attempts }: Membership,
    { scope, known, wasBegun }: { scope: Scope; known: Known; wasBegun: boolean },
  ): Failed {
    const now = clock()
    const failed = { kind: 'failed', desired, wasBegun } as const
    if (error instanceof ActionRequiredError) {
      const failure: Failure = { code: error.code, message: error.message }
      if (error.scope === 'call') {
        gate.answered(scope, now)
        return { ...failed, failure, undo: known, next: { kind: 'park', mayHeal: error.mayHeal } }
      }
      if (gate.stopped(scope, error.scope, failure)) {
        log.error(
          { ...scope, code: error.code, width: error.scope, reason: error.message },
          'no more calls are made: somebody has to act, and then run `latchkey sync run`',
        )
      }
      return { ...failed, failure, undo: known, next: { kind: 'retry', at: now, countsAsAttempt: false } }
    }
    const { code, message, scope: width, notBefore, isRefused } = expected(error, scope)
    const failure: Failure = { code, message }
    const undo = isRefused ? known : null
    const isNew = gate.limited(scope, width, notBefore, failure, now)
    if (isNew && notBefore !== null && notBefore - now >= LONG_WAIT_MS) {
      log.warn(
        { ...scope, width, until: new Date(notBefore).toISOString(), reason: message },
        'rate limited by the platform; paused until the time given',
      )
    }
    if (width === 'call') {
      const at = Math.max(notBefore ?? 0, now + backOffMs(attempts + 1, BACK_OFF, random()))
      return { ...failed, failure, undo, next: { kind: 'retry', at, countsAsAttempt: true } }
    }
    const at = gate.opensAt(scope) ?? now
    return { ...failed, failure, undo, next: { kind: 'retry', at, countsAsAttempt: false } }
  }

  /** Anything else is an adapter's bug. Its message is told to nobody, since nothing keeps a token out of it. */
  function expected(error: unknown, scope: Scope): RetryableError {
    if (error instanceof RetryableError) return error
    const name = error instanceof Error ? error.name : typeof error
    const at =
      error instanceof Error ? (error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? []) : []
    log.error({ ...scope, name, at }, 'a call to a platform failed as none should')
    return new RetryableError('unexpected', `The call failed unexpectedly (${name}): see the log.`)
  }
}
