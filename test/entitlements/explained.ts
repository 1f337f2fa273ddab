import { explainSource, type SourceExplanation } from '../../src/entitlements/explain-source.js'
import type { FoldableEvent } from '../../src/entitlements/fold-source.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { PaymentEvent, SubscriptionEvent } from '../../src/provider/event.js'
import { minute, paymentEvent, subscriptionEvent } from './events.js'

export const SUBSCRIPTION: SourceKey = { kind: 'subscription', id: 'sub_1' }
export const PAYMENT: SourceKey = { kind: 'payment', id: 'pay_1' }

/** What happened, told by a short event id: of `sub_1`, by card, at a minute of the example. */
export function pay(
  id: string,
  type: PaymentEvent['type'],
  paymentId: string | null,
  at: number,
  fields: Partial<PaymentEvent> = {},
): PaymentEvent {
  const createdAt = minute(at)
  return paymentEvent({ id, type, paymentId, createdAt, rail: 'card', subscriptionId: 'sub_1', ...fields })
}

export function sub(
  id: string,
  type: SubscriptionEvent['type'],
  at: number,
  fields: Partial<SubscriptionEvent> = {},
): SubscriptionEvent {
  return subscriptionEvent({ id, type, createdAt: minute(at), ...fields })
}

/** The same as `pay`, of a one-time payment. */
export function once(
  id: string,
  type: PaymentEvent['type'],
  at: number,
  fields: Partial<PaymentEvent> = {},
): PaymentEvent {
  return pay(id, type, 'pay_1', at, { subscriptionId: null, ...fields })
}

/** Explains a source of which everything was received a second after it happened. */
export function explained(
  key: SourceKey,
  events: readonly FoldableEvent[],
  policy: Policy = DOCUMENTED_POLICY,
): SourceExplanation {
  const stored = events.map((event) => ({
    event,
    receivedAt: event.createdAt + 1000,
    disposition: 'applied' as const,
  }))
  return explainSource(key, stored, policy)
}
