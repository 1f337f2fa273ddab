import type { Environment } from '../provider/event.js'
import type { Change } from './changes.js'
import type { MembershipsTable } from './sync-schema.js'

export interface MembershipKey {
  readonly environment: Environment
  /** Names the role or group, whatever its environment. */
  readonly target: string
  readonly accountId: string
}

/** A failure as it is kept: a name that scripts may rely on, and a message for people. */
export interface Failure {
  readonly code: string
  readonly message: string
}

export type StoredState = MembershipsTable['state']

/**
 * A state as users see it. `unconfirmed`: a removal that waits for an operator, by the bound on removals, which is
 * worked out and not stored.
 */
export type ShownState = 'settled' | 'due' | 'retrying' | 'waiting' | 'parked' | 'unconfirmed'

/** A member that is only asked about again, and one that can't be reached, are as they should be. */
export const SHOWN_AS: Readonly<Record<StoredState, Exclude<ShownState, 'unconfirmed'>>> = {
  settled: 'settled',
  recheck: 'settled',
  gone: 'settled',
  due: 'due',
  retrying: 'retrying',
  waiting: 'waiting',
  parked: 'parked',
}

/** Whether one platform account should be, and is, a member. Instants are epoch milliseconds. */
export interface Membership extends MembershipKey {
  readonly customerId: string
  readonly state: StoredState
  readonly desired: boolean
  readonly desiredSince: number
  /** Why it is desired, or no more; null: it never was. */
  readonly reason: MembershipReason | null
  readonly applied: MembershipsTable['applied']
  readonly appliedAt: number | null
  readonly given: boolean
  readonly confirmed: boolean
  readonly attempts: number
  /** Null unless its state is `due`, `retrying` or `recheck`. */
  readonly nextAttemptAt: number | null
  readonly mayHeal: boolean
  /** The newest failure; null since it last succeeded. */
  readonly error: Failure | null
}

export function membershipKey({ environment, target, accountId }: MembershipKey): string {
  return JSON.stringify([environment, target, accountId])
}

/**
 * Why a membership is to be given or removed: what changed access, as the change log has it; or an account was linked
 * (`link`), products and targets were mapped in another way (`config`), or a restore had everybody looked at (`restore`).
 */
export interface MembershipReason {
  readonly productIds: readonly string[]
  /** `eventId`: null where no event caused it, or it is not known. */
  readonly cause: {
    readonly kind: Change['cause']['kind'] | 'link' | 'config' | 'restore'
    readonly eventId: string | null
  }
}

/** What is desired of one account, as access and links say. */
export interface Desire extends MembershipKey {
  readonly customerId: string
  readonly desired: boolean
}

/** The same, and where it is not what was desired before, why. */
export interface NewDesire extends Desire {
  readonly reason: MembershipReason | null
}

export function neverDesired(
  { environment, target, accountId, customerId }: Desire,
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
    mayHeal: false,
    error: null,
  }
}

/** What became of a call to the platform, or of the look before it. */
export interface Failed {
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

export type Happening =
  /** What access and links say now. */
  | ({ readonly kind: 'desired' } & Pick<Membership, 'desired' | 'customerId' | 'reason'>)
  /** A call begins. It may have any outcome, should no answer come: `given` and `unknown` are on disk before it. */
  | { readonly kind: 'begin'; readonly action: 'give' | 'take' }
  /** The platform said that it is a member already, or a call of ours has made it one or removed it. */
  | { readonly kind: 'found' | 'gave' | 'took' }
  /** The account was not there when it should have been removed. */
  | { readonly kind: 'gone' }
  | Failed
  /** It asked the platform to become a member, and we let it in. */
  | { readonly kind: 'letIn' }
  /** Somebody has it tried at once. */
  | { readonly kind: 'retry' }
  /** A sweep has it asked about again, unless it was seen since `before`. */
  | { readonly kind: 'recheck'; readonly before: number }
  /** An operator agreed to its removal. */
  | { readonly kind: 'confirm' }

/**
 * The membership after something happened; null: that changes nothing any more, and a call must not begin.
 *
 * What is desired may change at any moment, also while a call is under way: every step starts from the membership as
 * it is in the transaction that keeps the step.
 */
export function next(membership: Membership, happening: Happening, now: number): Membership | null {
  const { desired, applied, state } = membership
  switch (happening.kind) {
    case 'desired':
      return turned(membership, happening, now)
    case 'begin':
      if ((happening.action === 'give') !== desired || (!desired && !isOpen(membership))) return null
      return {
        ...membership,
        given: true,
        applied: 'unknown',
        appliedAt: null,
        state: state === 'recheck' ? openState(membership) : state,
      }
    case 'found':
    case 'gave':
      return restarted({ ...membership, applied: 'member', appliedAt: now }, now)
    case 'took':
      // `given` stays, so that the removal is counted; once it is desired again, nothing is left that was given.
      return restarted(
        { ...membership, applied: 'absent', appliedAt: now, given: membership.given && !desired },
        now,
      )
    case 'gone': {
      // No removal was confirmed: should it come back with what Latchkey gave, that is still to be removed.
      const later = restarted({ ...membership, applied: 'unknown', appliedAt: null }, now)
      return desired || later.state === 'settled' ? later : { ...later, state: 'gone', nextAttemptAt: null }
    }
    case 'failed':
      return failed(membership, happening, now)
    case 'letIn':
      return desired
        ? restarted({ ...membership, given: true, applied: 'unknown', appliedAt: now }, now)
        : null
    case 'retry': {
      const later = restarted(membership, now)
      // Nothing is known to be left to do, so what failed was the question whether it is still a member.
      return later.state === 'settled' && desired ? { ...later, state: 'recheck', nextAttemptAt: now } : later
    }
    case 'recheck': {
      if (state === 'gone') return { ...membership, state: 'due', nextAttemptAt: now }
      const isUnseen = desired && applied === 'member' && (membership.appliedAt ?? 0) < happening.before
      return isUnseen ? { ...membership, state: 'recheck', nextAttemptAt: now } : null
    }
    case 'confirm':
      return !desired && isOpen(membership) ? { ...membership, confirmed: true } : null
    default:
      return happening satisfies never
  }
}

/** Whether the platform must be told something before it is as desired. What others gave is never removed. */
function isOpen({ desired, applied, given }: Membership): boolean {
  return desired ? applied !== 'member' : given && applied !== 'absent'
}

const openState = ({ error }: Membership): StoredState => (error === null ? 'due' : 'retrying')

/** As if nothing had ever failed. */
function restarted(membership: Membership, now: number): Membership {
  const isDue = isOpen(membership)
  return {
    ...membership,
    state: isDue ? 'due' : 'settled',
    nextAttemptAt: isDue ? now : null,
    attempts: 0,
    mayHeal: false,
    error: null,
  }
}

function turned(
  membership: Membership,
  { desired, customerId, reason }: Pick<Membership, 'desired' | 'customerId' | 'reason'>,
  now: number,
): Membership {
  if (membership.desired === desired) return { ...membership, customerId }
  // Nobody was given what is absent now: whoever makes it a member next, it was not given before.
  const given = membership.given && !(desired && membership.applied === 'absent')
  const changed = { ...membership, customerId, desired, desiredSince: now, reason, given, confirmed: false }
  const later = restarted(changed, now)
  // A limit that the platform has set outlasts a change of mind.
  const notBefore = Math.max(now, membership.nextAttemptAt ?? now)
  return { ...later, nextAttemptAt: later.nextAttemptAt === null ? null : notBefore }
}

function failed(membership: Membership, step: Failed, now: number): Membership {
  // Let in meanwhile, it may be a member whatever became of the call.
  const wasLetIn = step.wasBegun && membership.appliedAt !== null
  const base = step.undo === null || wasLetIn ? membership : { ...membership, ...step.undo }
  if (wasLetIn || membership.desired !== step.desired) return restarted(base, now)
  const after = { ...base, error: step.failure }
  if (step.next.kind === 'park') {
    const { mayHeal } = step.next
    const state = mayHeal && base.desired ? 'waiting' : 'parked'
    return { ...after, state, mayHeal, attempts: base.attempts + 1, nextAttemptAt: null }
  }
  return {
    ...after,
    state: isOpen(base) ? 'retrying' : 'recheck',
    attempts: base.attempts + (step.next.countsAsAttempt ? 1 : 0),
    nextAttemptAt: step.next.at,
  }
}
