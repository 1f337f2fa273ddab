import type { PaymentEvent, Rail } from '../provider/event.js'
import { createIntervalTracker } from './intervals.js'
import type { AccessInterval } from './model.js'
import { newestTold } from './order.js'
import type { Policy } from './policy.js'
import { railOfPayment } from './rail.js'
import { END_REASON_OF, readEvents } from './reading.js'
import { type Standing, standingAfter } from './standing.js'

export interface FoldedPayment {
  readonly rail: Rail
  readonly productId: string | null
  readonly intervals: AccessInterval[]
}

/** Folds a one-time payment: it gives access while it is good by a grant. */
export function foldPayment(events: readonly PaymentEvent[], policy: Policy): FoldedPayment {
  const rail = railOfPayment(events)
  const productId = newestTold(events, (event) => event.productId)
  const tracker = createIntervalTracker()
  let standing: Standing | undefined
  for (const { event, effect } of readEvents(events, () => rail, policy)) {
    standing = standingAfter(standing, event, effect, effect === 'grant')
    const access = standing === 'good' && productId !== null ? { productId, end: null } : null
    tracker.see(event.createdAt, access, { reason: END_REASON_OF[event.type], eventId: event.id })
  }
  return { rail, productId, intervals: tracker.intervals() }
}
