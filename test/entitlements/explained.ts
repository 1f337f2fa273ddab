import {
  type ExplainedSource,
  type Explanation,
  explain,
  type StoredAccount,
} from '../../src/entitlements/explain.js'
import type { FoldableEvent } from '../../src/entitlements/kept-event.js'
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

export type Sources = readonly (readonly [SourceKey, readonly FoldableEvent[]])[]

function account(sources: Sources, fields: Partial<StoredAccount> = {}): StoredAccount {
  return {
    customerId: 'cus_1',
    environment: 'live',
    isKnown: true,
    sources: sources.map(([key, events]) => ({
      key,
      events: events.map((event) => ({ event, receivedAt: event.createdAt, disposition: 'applied' })),
    })),
    blocks: [],
    erasures: [],
    holds: [],
    ...fields,
  }
}

/** Why `cus_1` may use `pro_a` at a minute of the example, or may not. */
export function explainAt(at: number, sources: Sources, fields: Partial<StoredAccount> = {}): Explanation {
  return explain(account(sources, fields), 'pro_a', { at: minute(at) }, DOCUMENTED_POLICY)
}

/** What an explanation says of the events of one source, asked about a product that it names. */
export function explained(
  key: SourceKey,
  events: readonly FoldableEvent[],
  policy: Policy = DOCUMENTED_POLICY,
): ExplainedSource {
  const productId = events.find((event) => event.productId !== null)?.productId ?? 'pro_a'
  const [source] = explain(account([[key, events]]), productId, { at: minute(0) }, policy).sources
  if (source === undefined) throw new Error('The source is not explained.')
  return source
}
