import { type Membership, SHOWN_AS } from '../store/membership.js'
import type { MembershipView } from './sync.js'

/** @param isHeld whether removals from its target wait for an operator */
export function viewMembership(
  { nextAttemptAt, mayHeal, confirmed, state, error, ...membership }: Membership,
  isHeld: boolean,
): MembershipView {
  const isOpenRemoval = !membership.desired && !confirmed && (state === 'due' || state === 'retrying')
  return {
    ...membership,
    state: isHeld && isOpenRemoval ? 'unconfirmed' : SHOWN_AS[state],
    nextAttemptAt,
    parked: state === 'waiting' || state === 'parked' ? error : null,
    lastError: error,
  }
}
