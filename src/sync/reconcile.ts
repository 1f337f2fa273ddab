import { setImmediate as turn } from 'node:timers/promises'
import pLimit from 'p-limit'
import { isLatchkeyError } from '../errors.js'
import { isOfStore } from '../store/engine.js'
import {
  type DueKind,
  type Failure,
  loadDueMemberships,
  type Membership,
  membershipKey,
  nextDueAt,
} from '../store/memberships.js'
import { isHeld } from './bound.js'
import type { SyncContext } from './context.js'
import { loadActiveProducts, productsOfTargets } from './desired.js'
import { type BackOff, backOffMs } from './limits.js'
import { inBatches, oneAtATime } from './loop.js'
import type { Failed, MembershipEvent } from './membership.js'
import { HeldBackError } from './outgoing.js'
import { ActionRequiredError, type Platform, RetryableError } from './platform.js'
import type { AdapterName, SyncTarget } from './target.js'
import { type MembershipStep, stepOf } from './writes.js'

/** How many due memberships are read at once: a slow call delays no more than these. */
const ROUND = 64
/** Removals that nobody confirmed come last, after everyone who waits for access. */
const ORDER: readonly DueKind[] = ['give', 'agreedTake', 'take', 'recheck']
/** For one membership that fails while others succeed. */
const BACK_OFF: BackOff = { first: 1_000, most: 15 * 60_000 }
/** Shorter waits are normal and not logged. */
const LONG_WAIT_MS = 60_000

/** The results that a run reports. */
export const COUNTED = ['given', 'taken', 'unchanged', 'failed', 'waiting', 'parked'] as const
/** `superseded`: the desired state changed meanwhile, or another process makes the calls now. */
export type AttemptResult = (typeof COUNTED)[number] | 'stopped' | 'superseded'

interface Picked {
  readonly membership: Membership
  readonly target: SyncTarget
}

/** A call to the platform failed; the cause is its error. */
class CallFailed extends Error {}

/**
 * Makes the memberships on one platform what they should be.
 * @param onAttempt called after every attempt
 */
export function createReconciler(
  context: SyncContext,
  name: AdapterName,
  onAttempt: (target: SyncTarget, result: AttemptResult) => void,
) {
  const { db, gate, removals, mayCall, clock } = context
  const pick = createPick(context)
  const attempt = createAttempt(context, name)
  /** All targets of the platform, configured or not. */
  const targets = () => context.targets.filter(({ adapter }) => adapter === name)

  /** @returns whether anything was done */
  async function round(): Promise<boolean> {
    const platform = context.platforms.get(name)
    if (platform === undefined) return false
    const limit = pLimit(platform.concurrency)
    const permits = targets().map((target) => ({ target, permit: gate.permit(target, clock()) }))
    const open = permits.filter(({ permit }) => permit === 'allowed')
    const picked: Picked[] = []
    for (const { target } of open) picked.push(...(await pick(target, Math.ceil(ROUND / open.length))))
    // A platform that limited us gets one call at a time.
    for (const { target } of permits.filter(({ permit }) => permit === 'probe')) {
      const probe = await pick(target, 1)
      picked.push(...probe)
      if (probe.length > 0) break
    }
    const attempts = picked.map(({ membership, target }) =>
      limit(async () => {
        // A failure since it was picked may forbid the call.
        if (!mayCall() || gate.permit(target, clock()) === 'blocked') return false
        onAttempt(target, await attempt(platform, membership, target))
        return true
      }),
    )
    // All of them end first: the next round must not begin again what is still under way when one fails.
    await Promise.allSettled(attempts)
    return (await Promise.all(attempts)).includes(true)
  }

  return {
    /** Resolves when no more work is due and allowed. */
    work: oneAtATime(async () => {
      while (mayCall() && (await round())) await turn()
    }),
    /** When further work is due, in epoch milliseconds. */
    async nextAt(): Promise<readonly number[]> {
      const times: number[] = []
      for (const target of targets()) {
        const opensAt = !context.platforms.has(name) ? null : gate.opensAt(target)
        if (opensAt === null) continue
        const dueAt = await nextDueAt(db, target, await isHeld(db, target, removals(), clock()))
        if (dueAt !== null) times.push(Math.max(dueAt, opensAt))
      }
      return times
    },
  }
}

/** Picks what is due in a target, without the removals that wait for an operator. */
function createPick({ db, removals, clock, log }: SyncContext) {
  /** Targets with a logged warning that their removals wait for an operator. */
  const warnedHeld = new Set<string>()

  function warnAboutBound({ environment, target }: SyncTarget, isWaiting: boolean): void {
    const key = `${environment} ${target}`
    if (!isWaiting) warnedHeld.delete(key)
    else if (!warnedHeld.has(key)) {
      warnedHeld.add(key)
      log.warn(
        { environment, target },
        'more removals than the bound allows wait for an operator: see `latchkey sync plan`',
      )
    }
  }

  return async (target: SyncTarget, most: number): Promise<readonly Picked[]> => {
    const picked: Membership[] = []
    for (const kind of ORDER) {
      if (picked.length >= most) break
      const due = await loadDueMemberships(db, target, kind, clock(), most - picked.length)
      // Counted after the memberships were read, to include those that have come to wait since.
      const isWaiting = kind === 'take' && due.length > 0 && (await isHeld(db, target, removals(), clock()))
      if (kind === 'take') warnAboutBound(target, isWaiting)
      const known = new Set(picked.map(({ accountId }) => accountId))
      if (!isWaiting) picked.push(...due.filter(({ accountId }) => !known.has(accountId)))
    }
    return picked.map((membership) => ({ membership, target }))
  }
}

/**
 * Makes one membership what it should be. The store records a changing call before it is made: a crash at any moment
 * leads to another call, never to a wrong record.
 */
function createAttempt(context: SyncContext, name: AdapterName) {
  const { writeSync, gate, mayCall, clock } = context
  const writeStep = inBatches((steps: readonly MembershipStep[]) => writeSync('stepMemberships', steps))
  const judge = createJudge(context, name)
  const note = createNotes(context, name)

  async function call<Answer>(target: SyncTarget, make: () => Promise<Answer>): Promise<Answer> {
    try {
      const answer = await make()
      gate.answered(target, clock())
      return answer
    } catch (error) {
      // What failed is not the call: a store that fails an adapter fails the round, as it does everywhere else.
      if (error instanceof HeldBackError || isLatchkeyError(error, 'store_unavailable') || isOfStore(error))
        throw error
      throw new CallFailed('', { cause: error })
    }
  }

  return async (platform: Platform, membership: Membership, target: SyncTarget): Promise<AttemptResult> => {
    const { desired, applied, given, accountId } = membership
    let known: Failed['undo'] = null
    let wasBegun = false
    const step = (event: MembershipEvent) => writeStep(stepOf(membership, event))
    const begin = async (action: 'give' | 'take') => {
      wasBegun = (await step({ kind: 'begin', action })) === true
      // A process that was stopped meanwhile finds that another one makes the calls.
      return wasBegun && mayCall()
    }
    try {
      if (desired) {
        // An earlier call may have been made: repeating it is harmless, and then the membership is certainly ours.
        if (!(applied === 'unknown' && given)) {
          if ((await call(target, () => platform.observe(target.of, accountId))) === 'member') {
            await step({ kind: 'found' })
            return 'unchanged'
          }
          known = { applied: 'absent', given: false }
        }
        if (!(await begin('give'))) return 'superseded'
        await call(target, () => platform.give(target.of, accountId))
        await step({ kind: 'gave' })
      } else {
        if (applied === 'member') known = { applied: 'member', given: true }
        if (!(await begin('take'))) return 'superseded'
        const isGone = (await call(target, () => platform.take(target.of, accountId))) === 'gone'
        await step({ kind: isGone ? 'gone' : 'took' })
        if (isGone) {
          note.forget(membership)
          return 'unchanged'
        }
      }
    } catch (error) {
      // It was stored as begun: like after a crash, the call is made again.
      if (error instanceof HeldBackError) return 'superseded'
      if (!(error instanceof CallFailed)) throw error
      const { isRefused, isStop, ...failed } = judge(error.cause, membership, target)
      await step({ kind: 'failed', desired, wasBegun, undo: isRefused ? known : null, ...failed })
      if (isStop) return 'stopped'
      return failed.next.kind === 'retry' ? 'failed' : note.parked(membership, failed.next, failed.failure)
    }
    const result = desired ? 'given' : 'taken'
    note.forget(membership)
    await note.done(membership, result, desired && applied === 'member')
    return result
  }
}

/** Logs what became of memberships. */
function createNotes(context: SyncContext, name: AdapterName) {
  const { db, log } = context
  /** Sweeps retry parked memberships: the last error code logged for each, to log it once. */
  const loggedParked = new Map<string, string>()

  return {
    /** The problem of a membership is over. */
    forget: (membership: Membership) => void loggedParked.delete(membershipKey(membership)),
    /** One line for each role or group given or taken. @param isRepair it was given before, and got lost */
    async done(
      { environment, customerId, target, reason }: Membership,
      action: 'given' | 'taken',
      isRepair: boolean,
    ): Promise<void> {
      const fields = { environment, customerId, platform: name, target, ...(reason ?? { cause: null }) }
      if (!isRepair) return log.info(fields, `membership ${action}`)
      const opening = productsOfTargets(context.products, environment).get(target)
      const active = (await loadActiveProducts(db, environment, [customerId])).get(customerId) ?? []
      const productIds = active.filter((id) => opening?.has(id) === true)
      log.info({ ...fields, productIds, cause: { kind: 'sweep', eventId: null } }, `membership ${action}`)
    },
    parked(
      membership: Membership,
      { mayHeal }: Extract<Failed['next'], { kind: 'park' }>,
      { code, message }: Failure,
    ): 'waiting' | 'parked' {
      const { environment, customerId, desired, target } = membership
      const result = mayHeal && desired ? 'waiting' : 'parked'
      const key = membershipKey(membership)
      if (loggedParked.get(key) === code) return result
      loggedParked.set(key, code)
      const action = desired ? 'give' : 'take'
      const fields = { environment, customerId, platform: name, target, action, code, reason: message }
      if (result === 'waiting') log.info(fields, 'membership waits for the customer')
      else log.warn(fields, 'membership parked: action needed')
      return result
    },
  }
}

/** Decides what follows from a failed call, for the membership and for other calls. */
function createJudge({ gate, clock, random, log }: SyncContext, name: AdapterName) {
  /** Any other error is a bug in the adapter. Its message is not shown, since it might hold a token. */
  function expected(error: unknown): RetryableError | ActionRequiredError {
    if (error instanceof RetryableError || error instanceof ActionRequiredError) return error
    const kind = error instanceof Error ? error.name : typeof error
    const stack = (error instanceof Error ? error.stack : undefined) ?? ''
    const at = stack.split('\n').filter((line) => /^\s+at /.test(line))
    log.error({ platform: name, name: kind, at }, 'a call to a platform failed because of a bug')
    return new RetryableError('unexpected', `The call failed unexpectedly (${kind}): see the log.`)
  }

  /** `isRefused`: it was certainly not made. */
  return (
    thrown: unknown,
    { attempts }: Membership,
    target: SyncTarget,
  ): Pick<Failed, 'failure' | 'next'> & { readonly isRefused: boolean; readonly isStop: boolean } => {
    const now = clock()
    const error = expected(thrown)
    const { code, message, scope: width } = error
    const isNew = gate.failed(target, error, now)
    const fields = { platform: name, target: target.target, code, width, reason: message }
    const failed = { failure: { code, message }, isRefused: true, isStop: false }
    const retry = (at: number, countsAsAttempt = false) => ({ kind: 'retry', at, countsAsAttempt }) as const
    if (error instanceof ActionRequiredError) {
      if (width === 'call') return { ...failed, next: { kind: 'park', mayHeal: error.mayHeal } }
      if (isNew) log.error(fields, 'calls are stopped: fix the problem, then run `latchkey sync run`')
      return { ...failed, isStop: true, next: retry(now) }
    }
    const { notBefore, isRefused } = error
    if (isNew && notBefore !== null && notBefore - now >= LONG_WAIT_MS) {
      const until = new Date(notBefore).toISOString()
      log.warn({ ...fields, until }, 'rate limited by the platform; paused until the time given')
    }
    // A wait for all calls is not a failure of this one.
    const opensAt = gate.opensAt(target) ?? now
    if (width !== 'call' || opensAt > now) return { ...failed, isRefused, next: retry(opensAt) }
    const at = Math.max(notBefore ?? 0, now + backOffMs(attempts + 1, BACK_OFF, random()))
    return { ...failed, isRefused, next: retry(at, true) }
  }
}
