import type { Failure, Membership, MembershipKey, StoredState } from '../store/memberships.js'

/**
 * A state as users see it. `settled`: as it should be. `due`: to be done now. `retrying`: failed, and retried
 * automatically. `waiting`: for the customer, such as to join. `parked`: until somebody fixes a problem. `unconfirmed`
 * is not stored: a removal above the bound, which waits for an operator.
 */
export type ShownState = 'settled' | 'due' | 'retrying' | 'waiting' | 'parked' | 'unconfirmed'

/**
 * Every stored state, and the state that users see. The first three have a time at which they are due.
 *
 * - `due`: call the platform.
 * - `retrying`: the same, after a failure.
 * - `recheck`: a member; ask the platform whether it still is one.
 * - `waiting`: for the customer, for example to join. Each sweep tries again.
 * - `stuck`: a removal that somebody has to make possible. Each sweep tries again.
 * - `parked`: for an operator.
 * - `gone`: the account was not there when it should have been removed.
 * - `settled`: nothing to do.
 */
export const SHOWN_AS: Readonly<Record<StoredState, Exclude<ShownState, 'unconfirmed'>>> = {
  due: 'due',
  retrying: 'retrying',
  recheck: 'settled',
  waiting: 'waiting',
  stuck: 'parked',
  parked: 'parked',
  gone: 'settled',
  settled: 'settled',
}

/**
 * How long a platform may still carry out a call that it has not answered. A removal waits for that after a call to give:
 * what is given after it would look as if staff had given it.
 */
export const MAY_STILL_COME_MS = 30_000

/** The desired state of one account, from access and links. */
export interface Desire extends MembershipKey {
  readonly customerId: string
  readonly desired: boolean
}

export type NewDesire = Desire & Pick<Membership, 'reason'>

export function neverDesired(
  { environment, target, accountId }: MembershipKey,
  { customerId }: Pick<Membership, 'customerId'>,
  now: number,
): Membership {
  return {
    environment,
    target,
    accountId,
    customerId,
    state: 'settled',
    desired: false,
    desiredSince: now,
    reason: null,
    applied: 'unknown',
    appliedAt: null,
    given: false,
    confirmed: false,
    attempts: 0,
    nextAttemptAt: null,
    error: null,
  }
}

/** A call to the platform failed, or the check before it. */
export interface Failed {
  readonly kind: 'failed'
  /** The desired state at the time of the call. */
  readonly desired: boolean
  /** Whether `begin` was stored. */
  readonly wasBegun: boolean
  readonly failure: Failure
  /** The earlier state, if the platform certainly did not do it; null: it may have. */
  readonly undo: Pick<Membership, 'applied' | 'given'> | null
  readonly next:
    | { readonly kind: 'retry'; readonly at: number; readonly countsAsAttempt: boolean }
    /** `mayHeal`: the cause may go away by itself, so sweeps try again. */
    | { readonly kind: 'park'; readonly mayHeal: boolean }
}

export type MembershipEvent =
  /** The desired state from access and links. */
  | ({ readonly kind: 'desired' } & Pick<Membership, 'desired' | 'customerId' | 'reason'>)
  /** A call is about to be made. Stored first: without an answer, the call may or may not have been made. */
  | { readonly kind: 'begin'; readonly action: 'give' | 'take' }
  /** The platform says it is a member already (`found`), or has made the change. */
  | { readonly kind: 'found' | 'gave' | 'took' }
  /** The account to remove is not there. */
  | { readonly kind: 'gone' }
  | Failed
  /** The account asked to join, and Latchkey approves. */
  | { readonly kind: 'letIn' }
  /** Somebody asked for a retry now. */
  | { readonly kind: 'retry' }
  /** A sweep began at `before` and did not find this member, or found a gone one again. */
  | { readonly kind: 'recheck'; readonly before: number }
  /** An operator confirmed the removal. */
  | { readonly kind: 'confirm' }

/**
 * The membership after a step; null: nothing changes, and a call must not begin.
 *
 * The desired state may change during a call, so each step starts from the membership as stored in the transaction
 * that writes the step.
 */
export function transition(membership: Membership, event: MembershipEvent, now: number): Membership | null {
  const { desired, state } = membership
  switch (event.kind) {
    case 'desired':
      return withDesire(membership, event, now)
    case 'begin': {
      const isNeeded = event.action === 'give' ? desired : !desired && isOpen(membership)
      if (!isNeeded) return null
      const begun = { ...membership, given: true, applied: 'unknown', appliedAt: null } as const
      return state === 'recheck' ? { ...begun, state: begun.error === null ? 'due' : 'retrying' } : begun
    }
    case 'found':
    case 'gave':
      return restarted({ ...membership, applied: 'member', appliedAt: now }, now)
    case 'took': {
      // `given` stays, so that the removal counts for the bound; if it is desired again, it is cleared.
      const given = membership.given && !desired
      return restarted({ ...membership, applied: 'absent', appliedAt: now, given }, now)
    }
    case 'gone': {
      // `given` stays: if the account comes back with the membership that Latchkey gave, it must still be removed.
      const later = restarted({ ...membership, applied: 'unknown', appliedAt: null }, now)
      return desired || later.state === 'settled' ? later : { ...later, state: 'gone', nextAttemptAt: null }
    }
    case 'failed':
      return failed(membership, event, now)
    case 'letIn':
      return desired
        ? restarted({ ...membership, given: true, applied: 'unknown', appliedAt: now }, now)
        : null
    case 'retry': {
      const later = restarted(membership, now)
      // No change is pending, so the failed call was the check whether it is still a member.
      return later.state === 'settled' && desired ? { ...later, state: 'recheck', nextAttemptAt: now } : later
    }
    case 'recheck': {
      if (state === 'gone') return { ...membership, state: 'due', nextAttemptAt: now }
      const isUnseen = (membership.appliedAt ?? 0) < event.before
      if (!desired || membership.applied !== 'member' || !isUnseen) return null
      return { ...membership, state: 'recheck', nextAttemptAt: now }
    }
    case 'confirm':
      return !desired && isOpen(membership) ? { ...membership, confirmed: true } : null
    default:
      return event satisfies never
  }
}

/** Whether the platform has to be called. */
function isOpen({ desired, applied, given }: Membership): boolean {
  return desired ? applied !== 'member' : given && applied !== 'absent'
}

/** Clears the traces of failures, and has the platform called at `at` if it must be. */
function restarted(membership: Membership, at: number): Membership {
  const isDue = isOpen(membership)
  return {
    ...membership,
    state: isDue ? 'due' : 'settled',
    nextAttemptAt: isDue ? at : null,
    attempts: 0,
    error: null,
  }
}

function withDesire(
  membership: Membership,
  { desired, customerId, reason }: Pick<Membership, 'desired' | 'customerId' | 'reason'>,
  now: number,
): Membership {
  if (membership.desired === desired) return { ...membership, customerId }
  // The membership that Latchkey gave is gone: if somebody else gives it next, it is theirs.
  const given = membership.given && !(desired && membership.applied === 'absent')
  const changed = { ...membership, customerId, desired, desiredSince: now, reason, given, confirmed: false }
  const mayStillCome = membership.given && membership.applied === 'unknown' && membership.appliedAt === null
  const earliest = mayStillCome && !desired ? now + MAY_STILL_COME_MS : now
  // A platform's rate limit outlasts the change.
  return restarted(changed, Math.max(earliest, membership.nextAttemptAt ?? now))
}

function failed(membership: Membership, step: Failed, now: number): Membership {
  // Let in since the call began: it may be a member, whatever the result of the call.
  const wasLetIn = step.wasBegun && membership.appliedAt !== null
  const base = step.undo === null || wasLetIn ? membership : { ...membership, ...step.undo }
  if (wasLetIn || membership.desired !== step.desired) {
    const mayStillCome = step.wasBegun && step.desired && step.undo === null && !membership.desired
    return restarted(base, mayStillCome ? now + MAY_STILL_COME_MS : now)
  }
  const after = { ...base, error: step.failure }
  if (step.next.kind === 'park') {
    const healing = base.desired ? 'waiting' : 'stuck'
    const state = step.next.mayHeal ? healing : 'parked'
    return { ...after, state, attempts: base.attempts + 1, nextAttemptAt: null }
  }
  return {
    ...after,
    state: isOpen(base) ? 'retrying' : 'recheck',
    attempts: base.attempts + (step.next.countsAsAttempt ? 1 : 0),
    nextAttemptAt: step.next.at,
  }
}
