import type { Rail } from '../provider/event.js'
import { type Access, createIntervalTracker, type TrackerState } from './intervals.js'
import { newestTold } from './order.js'
import type { Policy } from './policy.js'
import { railOfPayment } from './rail.js'
import { END_REASON_OF, type KeptPayment, type Reading, readEvents } from './reading.js'
import { type Standing, standingAfter } from './standing.js'

/** A one-time payment, folded. */
export interface FoldedPayment {
  readonly rail: Rail
  readonly productId: string | null
  readonly access: TrackerState
}

/** What one event did to a one-time payment. */
export interface PaymentStep {
  readonly reading: Reading<KeptPayment>
  readonly before: PaymentPoint
  readonly after: PaymentPoint
}

/** How the payment stands at the instant of an event, just before it or just after. */
export interface PaymentPoint {
  readonly standing: Standing | undefined
  readonly access: Access | null
}

/**
 * Folds all events of a one-time payment: it gives access while it is good by a grant.
 * @param observe is told of every step, in order; left out, nothing is gathered for it
 */
export function foldPayment(
  events: readonly KeptPayment[],
  policy: Policy,
  observe?: (step: PaymentStep) => void,
): FoldedPayment {
  const rail = railOfPayment(events)
  const productId = newestTold(events, (event) => event.productId)
  const tracker = createIntervalTracker()
  let standing: Standing | undefined
  for (const reading of readEvents(events, () => rail, policy)) {
    const { event, effect } = reading
    const before = observe && { standing, access: tracker.accessAt(event.createdAt) }
    standing = standingAfter(standing, event, effect, effect === 'grant')
    const access = standing === 'good' && productId !== null ? { productId, end: null } : null
    tracker.see(event.createdAt, access, { reason: END_REASON_OF[event.type], eventId: event.id })
    if (observe && before) {
      observe({ reading, before, after: { standing, access: tracker.accessAt(event.createdAt) } })
    }
  }
  return { rail, productId, access: tracker.state() }
}
