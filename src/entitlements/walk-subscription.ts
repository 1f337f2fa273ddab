import type { Rail } from '../provider/event.js'
import { type BasisStep, createBasis, type Ground } from './basis.js'
import { createEnds, type EndsState } from './ends.js'
import { type Access, createIntervalTracker, type TrackerState } from './intervals.js'
import { createPlan, type PlanState } from './plan.js'
import type { Policy } from './policy.js'
import { END_REASON_OF, type KeptSubscription, type Reading } from './reading.js'
import type { SubscriptionReading } from './subscription-reading.js'

/** What subscription events say beside access: shown to people, never decisive. */
export interface Shown {
  readonly pastDueSince: number | null
  readonly cancelAtPeriodEnd: boolean
  readonly periodEnd: number | null
  readonly providerStatus: string | null
}

export const NOTHING_SHOWN: Shown = {
  pastDueSince: null,
  cancelAtPeriodEnd: false,
  periodEnd: null,
  providerStatus: null,
}

/** What is known at the end of the walk. */
export interface SubscriptionWalk {
  readonly rail: Rail
  readonly access: TrackerState
  /** The product in force. */
  readonly productId: string | null
  readonly shown: Shown
  readonly cyclesWithoutPayment: number
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
  readonly code: BasisStep
  readonly before: WalkPoint
  readonly after: WalkPoint
}

/**
 * Walks a subscription's events in order: it gives the product of its plan while it stands on something and the
 * earliest of its ends lies ahead.
 * @param observe is told of every step, in order; left out, nothing is gathered for it
 */
export function walkSubscription(
  whole: SubscriptionReading,
  policy: Policy,
  observe?: (step: WalkStep) => void,
): SubscriptionWalk {
  const basis = createBasis(whole, policy)
  const ends = createEnds(policy)
  const plan = createPlan(whole, basis.isTakenBack)
  const tracker = createIntervalTracker()
  let shown = NOTHING_SHOWN

  const pointAt = (at: number): WalkPoint => ({
    ground: basis.ground(),
    ends: ends.state(),
    plan: plan.state(),
    productId: plan.product(),
    shown,
    access: tracker.accessAt(at),
  })

  for (const reading of whole.walk) {
    const { event } = reading
    const before = observe && pointAt(event.createdAt)
    const code = basis.apply(reading)
    plan.apply(reading)
    if (event.subject === 'subscription') {
      ends.apply(event)
      shown = showAfter(shown, event)
    }
    const productId = plan.product()
    const access = basis.ground() !== null && productId !== null ? { productId, end: ends.earliest() } : null
    tracker.see(event.createdAt, access, { reason: END_REASON_OF[event.type], eventId: event.id })
    if (observe && before) observe({ reading, code, before, after: pointAt(event.createdAt) })
  }
  return {
    rail: whole.rail,
    access: tracker.state(),
    productId: plan.product(),
    shown,
    cyclesWithoutPayment: basis.cyclesWithoutPayment(),
  }
}

function showAfter(before: Shown, event: KeptSubscription): Shown {
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
