import { type Explanation, explain, type StoredAccount } from '../../src/entitlements/explain.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import { type FoldableEvent, isGrantAct } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { ManualEvent } from '../../src/provider/event.js'
import { minute, pay, sub } from './events.js'

export type Events = readonly FoldableEvent[]
export type Sources = readonly (readonly [SourceKey, Events])[]

export const SUBSCRIPTION: SourceKey = { kind: 'subscription', id: 'sub_1' }
export const PAYMENT: SourceKey = { kind: 'payment', id: 'pay_1' }
export const MANUAL: SourceKey = { kind: 'manual', id: 'cus_1/pro_a' }

export const TO_B = { productId: 'pro_b' } as const
export const AT_PERIOD_END = { expiresAt: minute(43200), cancelAtPeriodEnd: true } as const
export const PERIOD_END = '2026-01-31T00:00:00.000Z'
export const NOTHING_CHANGES = 'for information only, since the policy lets it change nothing.'

export const BEGUN = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 0)]
export const REFUNDED = [...BEGUN, pay('evt_3', 'payment.refunded', 'pay_1', 10)]
export const OVERDUE = [...BEGUN, sub('evt_3', 'subscription.past_due', 100)]
export const CANCELED = [...BEGUN, sub('evt_3', 'subscription.canceled', 100, AT_PERIOD_END)]
export const ANNOUNCED = [...BEGUN, sub('evt_3', 'subscription.updated', 100, AT_PERIOD_END)]

export const acts = (...events: readonly ManualEvent[]) => events.filter(isGrantAct)

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

/** What an explanation says of the events of one source, asked about a product that it names. */
export function explained(
  key: SourceKey,
  events: Events,
  policy: Policy = DOCUMENTED_POLICY,
): Explanation['sources'][number] {
  const productId = events.find((event) => event.productId !== null)?.productId ?? 'pro_a'
  const [source] = explain(account([[key, events]]), productId, { at: minute(0) }, policy).sources
  if (source === undefined) throw new Error('The source is not explained.')
  return source
}

/** Why `cus_1` may use `pro_a` at a minute of the example, or may not. */
export function explainAt(at: number, sources: Sources, fields: Partial<StoredAccount> = {}) {
  return explain(account(sources, fields), 'pro_a', { at: minute(at) }, DOCUMENTED_POLICY)
}
