import type { HoldReason, SourceKey } from '../../../src/entitlements/model.js'
import { type Policy, TERMINAL_TYPES } from '../../../src/entitlements/policy.js'
import type { NormalizedEvent, Rail } from '../../../src/provider/event.js'
import { byTime } from './order.js'
import { isSourceEvent, type SourceEvent } from './rail.js'
import { type PlainSource, readSource } from './source.js'

const RAILS: readonly Rail[] = ['card', 'crypto', 'unknown']

/** The events of a source that wait, by event id, each with what it waits for. */
export function plainHeld(
  events: readonly NormalizedEvent[],
  key: SourceKey,
  policy: Policy,
): Record<string, HoldReason> {
  const source = readSource(events, key, policy)
  const held: Record<string, HoldReason> = {}
  for (const event of source.events.filter((one) => isDecisive(one, policy) && !onlyInforms(one))) {
    if (plainCustomer(events) === null) held[event.id] = 'customer_unknown'
    else if (source.events.every(({ productId }) => productId === null)) held[event.id] = 'product_unknown'
    else if (waitsForRail(event, source)) held[event.id] = 'rail_unknown'
  }
  return held
}

/** A payment event that names its subscription but no payment has nothing to wait for. */
function onlyInforms(event: SourceEvent): boolean {
  return event.subject === 'payment' && event.paymentId === null
}

/** The newest customer id among the events of a source. */
export function plainCustomer(events: readonly NormalizedEvent[]): string | null {
  const naming = events.filter(isSourceEvent).filter(({ customerId }) => customerId !== null)
  return naming.sort(byTime).at(-1)?.customerId ?? null
}

/** Whether an event of this type may grant or take back, on whatever rail. */
function isDecisive({ type }: SourceEvent, policy: Policy): boolean {
  const listed: readonly string[] = RAILS.flatMap((rail) => [
    ...policy.grantOn[rail],
    ...policy.revokeOn[rail],
  ])
  const always: readonly string[] = [
    ...TERMINAL_TYPES,
    'subscription.created',
    'subscription.renewed',
    'subscription.canceled',
  ]
  return listed.includes(type) || always.includes(type)
}

function waitsForRail(event: SourceEvent, { railOf, policy }: PlainSource): boolean {
  if (event.type !== 'checkout.succeeded' || event.paymentId === null) return false
  if (railOf(event.paymentId) !== 'unknown' || policy.grantOn.unknown.includes(event.type)) return false
  return policy.grantOn.card.includes(event.type) || policy.grantOn.crypto.includes(event.type)
}
