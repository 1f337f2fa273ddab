import type { Rail, SubscriptionEvent } from '../provider/event.js'
import { createBasis } from './basis.js'
import { createEnds } from './ends.js'
import { createIntervalTracker } from './intervals.js'
import type { AccessInterval } from './model.js'
import { createPlan } from './plan.js'
import type { Policy } from './policy.js'
import { END_REASON_OF, type SourceEvent } from './reading.js'
import { readSubscription } from './subscription-payments.js'

export interface FoldedSubscription {
  readonly rail: Rail
  readonly productId: string | null
  readonly intervals: AccessInterval[]
  readonly pastDueSince: number | null
  readonly cancelAtPeriodEnd: boolean
  readonly periodEnd: number | null
  readonly providerStatus: string | null
  readonly cyclesWithoutPayment: number
}

/**
 * Folds a subscription: it gives the product of its plan while it has a basis and the earliest of its ends
 * lies ahead. First the whole set is read (rails, which payment paid which cycle), then walked in order.
 */
export function foldSubscription(events: readonly SourceEvent[], policy: Policy): FoldedSubscription {
  const whole = readSubscription(events, policy)
  const basis = createBasis(whole, policy)
  const ends = createEnds(policy)
  const plan = createPlan(whole.walk, whole.findCharge, basis.isTakenBack)
  const tracker = createIntervalTracker()
  let shown: Shown = { pastDueSince: null, cancelAtPeriodEnd: false, periodEnd: null, providerStatus: null }

  for (const reading of whole.walk) {
    const { event } = reading
    basis.apply(reading)
    plan.apply(event)
    if (event.subject === 'subscription') ends.apply(event)
    const productId = plan.product()
    const access = basis.isThere() && productId !== null ? { productId, end: ends.earliest() } : null
    tracker.see(event.createdAt, access, { reason: END_REASON_OF[event.type], eventId: event.id })
    if (event.subject === 'subscription') shown = showAfter(shown, event)
  }
  return {
    ...shown,
    rail: whole.rail,
    productId: plan.product(),
    intervals: tracker.intervals(),
    cyclesWithoutPayment: basis.cyclesWithoutPayment(),
  }
}

type Shown = Pick<FoldedSubscription, 'pastDueSince' | 'cancelAtPeriodEnd' | 'periodEnd' | 'providerStatus'>

/** What subscription events say beside access: shown to people, never decisive. */
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
