import type { Failure, Membership } from './membership.js'

/*
 * How a membership moves. What is desired may change at any moment, also while a call is under way: every step
 * starts from the membership as it stands in the transaction that keeps the step.
 */

/** Whether the platform must be told something before it is as desired. What others gave is never taken back. */
export function needsCall({
  desired,
  applied,
  given,
}: Pick<Membership, 'desired' | 'applied' | 'given'>): boolean {
  return desired ? applied !== 'member' : given && applied !== 'absent'
}

/** Whether nothing of it is done any more by itself: not desired, and nothing left to take that is known of. */
export function isOver({
  desired,
  nextAttemptAt,
  parked,
}: Pick<Membership, 'desired' | 'nextAttemptAt' | 'parked'>): boolean {
  return !desired && nextAttemptAt === null && parked === null
}

/**
 * Whether the account was gone when it should have been taken from. No removal of what Latchkey gave was confirmed: if
 * it comes back with that, it is to be taken still.
 */
export function isGone(membership: Membership): boolean {
  return isOver(membership) && needsCall(membership)
}

/** A call that may have any outcome, should nothing be heard of it: `given` and `unknown` are on disk before it. */
export interface BeginStep {
  readonly kind: 'begin'
  readonly action: 'give' | 'take'
}

/**
 * What the platform said: it is a member already, or has become or ceased to be one by a call of ours. `gone`: the
 * account was not there to be taken anything from.
 */
export interface DoneStep {
  readonly kind: 'found' | 'gave' | 'took' | 'gone'
}

export interface FailedStep {
  readonly kind: 'failed'
  /** What was desired when the call was made. */
  readonly desired: boolean
  readonly failure: Failure
  /** What was known before the call, where the platform refused it; null: it may have been done all the same. */
  readonly undo: Pick<Membership, 'applied' | 'given'> | null
  /** Whether a call was begun. */
  readonly wasBegun: boolean
  readonly next:
    | { readonly kind: 'retry'; readonly at: number; readonly countsAsAttempt: boolean }
    | { readonly kind: 'park'; readonly mayHeal: boolean }
}

export type MembershipStep = BeginStep | DoneStep | FailedStep

/** The membership after a step; null: the step has nothing to do any more, and must not be taken. */
export function afterStep(membership: Membership, step: MembershipStep, now: number): Membership | null {
  switch (step.kind) {
    case 'begin':
      return begun(membership, step.action)
    case 'found':
    case 'gave':
      return settled({ ...membership, applied: 'member', appliedAt: now }, now)
    case 'took':
      // `given` stays, so that the removal is counted; of what is desired again nothing is left that was given.
      return settled(
        { ...membership, applied: 'absent', appliedAt: now, given: membership.given && !membership.desired },
        now,
      )
    case 'gone':
      return gone(membership, now)
    case 'failed':
      return failed(membership, step, now)
    default:
      return step satisfies never
  }
}

/** What access and links say now. */
export function redirected(
  membership: Membership,
  { desired, customerId }: Pick<Membership, 'desired' | 'customerId'>,
  now: number,
): Membership {
  if (membership.desired === desired) return { ...membership, customerId }
  const turned = {
    ...membership,
    customerId,
    desired,
    desiredSince: now,
    // Whoever gives what is absent now, it was not given before.
    given: membership.given && !(desired && membership.applied === 'absent'),
    confirmed: false,
  }
  const later = settled(turned, now)
  // A limit that the platform has set outlasts a change of mind.
  const notBefore = Math.max(now, membership.nextAttemptAt ?? now)
  return { ...later, nextAttemptAt: later.nextAttemptAt === null ? null : notBefore }
}

/** One that asked the platform to become a member, and is let in by us. */
export function letIn(membership: Membership, now: number): Membership {
  return settled({ ...membership, given: true, applied: 'unknown', appliedAt: now }, now)
}

/** Parked or retrying, it is tried at once. */
export function retried(membership: Membership, now: number): Membership {
  return settled(membership, now)
}

function begun(membership: Membership, action: BeginStep['action']): Membership | null {
  const isWanted =
    action === 'give' ? membership.desired : !membership.desired && needsCall({ ...membership })
  return isWanted ? { ...membership, given: true, applied: 'unknown', appliedAt: null } : null
}

function settled(membership: Membership, now: number): Membership {
  return {
    ...membership,
    attempts: 0,
    parked: null,
    mayHeal: false,
    lastError: null,
    nextAttemptAt: needsCall(membership) ? now : null,
  }
}

/** It stays given, of unknown outcome; but no call is due until it is seen again. */
function gone(membership: Membership, now: number): Membership {
  const later = settled({ ...membership, applied: 'unknown', appliedAt: null }, now)
  return membership.desired ? later : { ...later, nextAttemptAt: null }
}

function failed(membership: Membership, step: FailedStep, now: number): Membership {
  // Let in meanwhile, it may be a member whatever became of the call.
  const wasLetIn = step.wasBegun && membership.appliedAt !== null
  const base = step.undo === null || wasLetIn ? membership : { ...membership, ...step.undo }
  if (wasLetIn || membership.desired !== step.desired) return settled(base, now)
  const { next, failure } = step
  switch (next.kind) {
    case 'retry':
      return {
        ...base,
        attempts: base.attempts + (next.countsAsAttempt ? 1 : 0),
        lastError: failure,
        nextAttemptAt: next.at,
      }
    case 'park':
      return {
        ...base,
        attempts: base.attempts + 1,
        lastError: failure,
        parked: failure,
        mayHeal: next.mayHeal,
        nextAttemptAt: null,
      }
    default:
      return next satisfies never
  }
}
