import { setImmediate as turn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import {
  type Failed,
  type Failure,
  type Happening,
  type Membership,
  type MembershipKey,
  membershipKey,
} from '../store/membership.js'
import { type DueKind, loadDueMemberships, nextDueAt } from '../store/memberships.js'
import type { Database } from '../store/schema.js'
import type { WriteSync } from '../store/sync-writes.js'
import { type BackOff, backOffMs, type Gate, type Scope } from './limits.js'
import { createGathering, oneAtATime } from './loop.js'
import { isHeld, type RemovalBound } from './plan.js'
import { ActionRequiredError, type Platform, RetryableError } from './platform.js'
import type { AdapterName, SyncTarget, Target } from './target.js'

/** How much of a platform's work is looked up at once: a slow call keeps no more than this waiting. */
const ROUND = 64

/** Removals that nobody has agreed to come last, after what waits for access. */
const ORDER: readonly DueKind[] = ['give', 'agreedTake', 'take', 'recheck']

export interface LaneDeps extends DriveDeps {
  /** Reads. */
  readonly db: Kysely<Database>
  readonly name: AdapterName
  /** Asked at every round, since a reload may change it; null: none is configured. */
  readonly platform: () => Platform | null
  /** Those of the platform, configured or not. */
  readonly targets: () => readonly SyncTarget[]
  readonly bound: () => RemovalBound
  /** Whether calls may be begun. */
  readonly mayCall: () => boolean
  /** Told of every membership that was driven, and by what name. */
  readonly onDriven: (target: SyncTarget, result: DriveResult) => void
  /** Told whenever it is looked at whether removals of a target wait for an operator. */
  readonly onBound: (target: SyncTarget, held: boolean) => void
}

/** Works off what is due on one platform. */
export interface Lane {
  /** Resolves when nothing is due any more that may be done. */
  work(): Promise<void>
  /** When something comes due, in epoch milliseconds; null: nothing does by itself. */
  nextAt(): Promise<number | null>
}

interface Picked {
  readonly membership: Membership
  readonly target: SyncTarget
}

export function createLane(deps: LaneDeps): Lane {
  const { db, name, gate, targets, bound, mayCall, onDriven, onBound, clock } = deps
  const drive = createDrive(deps)
  const scopeOf = ({ target }: SyncTarget) => ({ platform: name, target })

  async function pick(target: SyncTarget, most: number): Promise<readonly Picked[]> {
    const picked: Membership[] = []
    for (const kind of ORDER) {
      if (picked.length >= most) break
      const due = await loadDueMemberships(db, target, kind, clock(), most - picked.length)
      // After they were read: what has come to wait since is counted, too.
      const isWaiting = kind === 'take' && due.length > 0 && (await isHeld(db, target, bound(), clock()))
      if (kind === 'take') onBound(target, isWaiting)
      const known = new Set(picked.map(({ accountId }) => accountId))
      if (!isWaiting) picked.push(...due.filter(({ accountId }) => !known.has(accountId)))
    }
    return picked.map((membership) => ({ membership, target }))
  }

  /** @returns whether anything was done */
  async function round(): Promise<boolean> {
    const platform = deps.platform()
    if (platform === null) return false
    const limit = pLimit(platform.concurrency)
    const passages = targets().map((target) => ({ target, passage: gate.passage(scopeOf(target), clock()) }))
    const open = passages.filter(({ passage }) => passage === 'open')
    const picked: Picked[] = []
    for (const { target } of open) picked.push(...(await pick(target, Math.ceil(ROUND / open.length))))
    // Whoever has limited us is asked by one call, and by no other beside it.
    for (const { target } of passages.filter(({ passage }) => passage === 'probe')) {
      const probe = await pick(target, 1)
      picked.push(...probe)
      if (probe.length > 0) break
    }
    const results = await Promise.all(picked.map((one) => limit(() => driveOne(platform, one))))
    return results.includes(true)
  }

  async function driveOne(platform: Platform, { membership, target }: Picked): Promise<boolean> {
    // What was found out since it was picked may forbid the call.
    if (!mayCall() || gate.passage(scopeOf(target), clock()) === 'closed') return false
    onDriven(target, await drive(platform, membership, target.of))
    return true
  }

  return {
    work: oneAtATime(async () => {
      while (mayCall() && (await round())) await turn()
    }),
    async nextAt() {
      const times: number[] = []
      for (const target of targets()) {
        const opensAt = deps.platform() === null ? null : gate.opensAt(scopeOf(target))
        if (opensAt === null) continue
        const held = await isHeld(db, target, bound(), clock())
        const dueAt = await nextDueAt(db, target, held ? ORDER.filter((kind) => kind !== 'take') : ORDER)
        if (dueAt !== null) times.push(Math.max(dueAt, opensAt))
      }
      return times.length === 0 ? null : Math.min(...times)
    },
  }
}

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

interface Step {
  readonly key: MembershipKey
  readonly happening: Happening
  readonly answer: (isTaken: boolean) => void
}

/** Takes steps of memberships: those that come while some are being written go together into one transaction. */
export function createStepWriter(
  writeSync: WriteSync,
): (key: MembershipKey, happening: Happening) => Promise<boolean> {
  const gather = createGathering<Step>(async (steps) => {
    const taken = await writeSync(
      'stepMemberships',
      steps.map(({ key: { environment, target, accountId }, happening }) => ({
        key: { environment, target, accountId },
        happening,
      })),
    )
    for (const [i, { answer }] of steps.entries()) answer(taken[i] ?? false)
  })
  return (key, happening) =>
    new Promise((resolve, reject) => {
      gather({ key, happening, answer: resolve }).catch(reject)
    })
}
