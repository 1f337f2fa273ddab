import { foldPayment } from './fold-payment.js'
import { foldSubscription } from './fold-subscription.js'
import { heldEvents } from './held.js'
import type { SourceKey, SourceState } from './model.js'
import { newestTold } from './order.js'
import type { Policy } from './policy.js'
import type { SourceEvent } from './reading.js'

/**
 * Folds the events of one source into its state.
 *
 * Deliveries come late, twice and out of order, so events are walked in (createdAt, rank, id) order,
 * whatever order they arrived in. Same set and policy: same state.
 * @param events all stored events of the source, each once, in any order
 */
export function foldSource(key: SourceKey, events: readonly SourceEvent[], policy: Policy): SourceState {
  const customerId = newestTold(events, (event) => event.customerId)
  const { productId, ...folded } =
    key.kind === 'subscription'
      ? foldSubscription(events, policy)
      : { ...NOT_A_SUBSCRIPTION, ...foldPayment(events.filter(isPaymentEvent), policy) }
  return {
    kind: key.kind,
    id: key.id,
    customerId,
    ...folded,
    newestAt: events.reduce((newest, event) => Math.max(newest, event.createdAt), Number.NEGATIVE_INFINITY),
    held: heldEvents(events, { customerId, productId }, policy),
  }
}

const NOT_A_SUBSCRIPTION = {
  pastDueSince: null,
  cancelAtPeriodEnd: false,
  periodEnd: null,
  providerStatus: null,
  cyclesWithoutPayment: 0,
} as const

function isPaymentEvent(event: SourceEvent): event is Extract<SourceEvent, { subject: 'payment' }> {
  return event.subject === 'payment'
}
