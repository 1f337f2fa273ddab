import type { SubscriptionEvent } from '../provider/event.js'
import { type BasisState, createBasis, NO_BASIS } from './basis.js'
import { createEnds, type EndsState, NO_ENDS } from './ends.js'
import { createIntervalTracker, NO_ACCESS, type TrackerState } from './intervals.js'
import { createPlan, NO_PLAN, type PlanState } from './plan.js'
import type { Policy } from './policy.js'
import { END_REASON_OF, type Reading } from './reading.js'
import type { WalkFacts } from './subscription-reading.js'

/** What subscription events say beside access: shown to people, never decisive. */
export interface Shown {
  readonly pastDueSince: number | null
  readonly cancelAtPeriodEnd: boolean
  readonly periodEnd: number | null
  readonly providerStatus: string | null
}

/** Everything that the walk carries from one event to the next. */
export interface WalkState {
  readonly basis: BasisState
  readonly ends: EndsState
  readonly plan: PlanState
  readonly access: TrackerState
  readonly shown: Shown
}

export const WALK_START: WalkState = {
  basis: NO_BASIS,
  ends: NO_ENDS,
  plan: NO_PLAN,
  access: NO_ACCESS,
  shown: { pastDueSince: null, cancelAtPeriodEnd: false, periodEnd: null, providerStatus: null },
}

export interface SubscriptionWalk {
  readonly state: WalkState
  /** The product in force at the end. */
  readonly productId: string | null
}

/**
 * Walks on from a state over the next events, in order: a subscription gives the product of its plan while it
 * stands on something and the earliest of its ends lies ahead.
 */
export function walkSubscription(
  from: WalkState,
  readings: readonly Reading[],
  facts: WalkFacts,
  policy: Policy,
): SubscriptionWalk {
  const basis = createBasis(facts, policy, from.basis)
  const ends = createEnds(policy, from.ends)
  const plan = createPlan(facts, basis.isTakenBack, from.plan)
  const tracker = createIntervalTracker(from.access)
  let shown = from.shown

  for (const reading of readings) {
    const { event } = reading
    basis.apply(reading)
    plan.apply(reading)
    if (event.subject === 'subscription') {
      ends.apply(event)
      shown = showAfter(shown, event)
    }
    const productId = plan.product()
    const access = basis.isThere() && productId !== null ? { productId, end: ends.earliest() } : null
    tracker.see(event.createdAt, access, { reason: END_REASON_OF[event.type], eventId: event.id })
  }
  return {
    state: {
      basis: basis.state(),
      ends: ends.state(),
      plan: plan.state(),
      access: tracker.state(),
      shown,
    },
    productId: plan.product(),
  }
}

function showAfter(before: Shown, event: SubscriptionEvent): Shown {
  const isRenewal = event.type === 'subscription.renewed'
  const isPastDue = event.type === 'subscription.past_due'
  return {
    pastDueSince: isPastDue ? event.createdAt : isRenewal ? null : before.pastDueSince,
    // A renewal shows that no earlier word of a cancellation holds, unless it repeats it.
    cancelAtPeriodEnd: event.cancelAtPeriodEnd ?? (before.cancelAtPeriodEnd && !isRenewal),
    periodEnd: event.expiresAt ?? before.periodEnd,
    providerStatus: event.status ?? before.providerStatus,
  }
}
