import type { SubscriptionEvent } from '../provider/event.js'
import { type BasisState, type BasisStep, createBasis, type Ground, NO_BASIS } from './basis.js'
import { createEnds, type EndsState, NO_ENDS } from './ends.js'
import { type Access, createIntervalTracker, NO_ACCESS, type TrackerState } from './intervals.js'
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

/** Where the walk stands at the instant of an event, just before it or just after. */
export interface WalkPoint {
  readonly ground: Ground | null
  readonly ends: EndsState
  readonly plan: PlanState
  /** The product in force. */
  readonly productId: string | null
  readonly shown: Shown
  readonly access: Access | null
}

/** What one event did in the walk. */
export interface WalkStep {
  readonly reading: Reading
  readonly basis: BasisStep
  readonly before: WalkPoint
  readonly after: WalkPoint
}

/**
 * Walks on from a state over the next events, in order: a subscription gives the product of its plan while it
 * stands on something and the earliest of its ends lies ahead.
 * @param observe is told of every step, in order; left out, nothing is gathered for it
 */
export function walkSubscription(
  from: WalkState,
  readings: readonly Reading[],
  facts: WalkFacts,
  policy: Policy,
  observe?: (step: WalkStep) => void,
): SubscriptionWalk {
  const basis = createBasis(facts, policy, from.basis)
  const ends = createEnds(policy, from.ends)
  const plan = createPlan(facts, basis.isTakenBack, from.plan)
  const tracker = createIntervalTracker(from.access)
  let shown = from.shown

  const pointAt = (at: number): WalkPoint => ({
    ground: basis.ground(),
    ends: ends.state(),
    plan: plan.state(),
    productId: plan.product(),
    shown,
    access: tracker.accessAt(at),
  })

  for (const reading of readings) {
    const { event } = reading
    const before = observe && pointAt(event.createdAt)
    const step = basis.apply(reading)
    plan.apply(reading)
    if (event.subject === 'subscription') {
      ends.apply(event)
      shown = showAfter(shown, event)
    }
    const productId = plan.product()
    const access = basis.ground() !== null && productId !== null ? { productId, end: ends.earliest() } : null
    tracker.see(event.createdAt, access, { reason: END_REASON_OF[event.type], eventId: event.id })
    if (observe && before) observe({ reading, basis: step, before, after: pointAt(event.createdAt) })
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
