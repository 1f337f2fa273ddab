import { type Membership, waitsForCustomer } from '../store/membership.js'
import { needsCall } from '../store/membership-steps.js'
import type { MembershipState, MembershipView } from './sync.js'

/** @param isHeld whether removals from its target wait for an operator */
export function viewMembership(membership: Membership, isHeld: boolean): MembershipView {
  return {
    environment: membership.environment,
    target: membership.target,
    accountId: membership.accountId,
    customerId: membership.customerId,
    state: stateOf(membership, isHeld),
    desired: membership.desired,
    desiredSince: membership.desiredSince,
    applied: membership.applied,
    appliedAt: membership.appliedAt,
    given: membership.given,
    attempts: membership.attempts,
    nextAttemptAt: membership.nextAttemptAt,
    parked: membership.parked,
    lastError: membership.lastError,
  }
}

function stateOf(membership: Membership, isHeld: boolean): MembershipState {
  if (membership.parked !== null) return waitsForCustomer(membership) ? 'waiting' : 'parked'
  // A member that is only asked about again is as it should be.
  if (membership.nextAttemptAt === null || !needsCall(membership)) return 'settled'
  if (isHeld && !membership.desired && !membership.confirmed) return 'unconfirmed'
  return membership.lastError === null ? 'due' : 'retrying'
}
