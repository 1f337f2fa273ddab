import type { HoldReason } from './model.js'
import { compareByTime } from './order.js'
import type { Policy } from './policy.js'
import { type PaymentRail, railsOfPayments } from './rail.js'
import { isDecisive, onlyInforms, type SourceEvent } from './reading.js'

/** Those events of a source that wait for something that no event has told yet, and for what. */
export function heldEvents(
  events: readonly SourceEvent[],
  known: { readonly customerId: string | null; readonly productId: string | null },
  policy: Policy,
): Record<string, HoldReason> {
  const rails = railsOfPayments(events)
  const held: Record<string, HoldReason> = {}
  // In one order, so that the same set of events is saved as the same text.
  for (const event of [...events].sort(compareByTime)) {
    if (!isDecisive(event.type, policy) || onlyInforms(event)) continue
    if (known.customerId === null) held[event.id] = 'customer_unknown'
    else if (known.productId === null) held[event.id] = 'product_unknown'
    else if (isBareCheckout(event, rails, policy)) held[event.id] = 'rail_unknown'
  }
  return held
}

/** A completed checkout proves no money on its own; a proof of the rail decides what it is worth. */
function isBareCheckout(
  event: SourceEvent,
  rails: ReadonlyMap<string, PaymentRail>,
  { grantOn }: Policy,
): boolean {
  if (event.type !== 'checkout.succeeded' || grantOn.unknown.includes(event.type)) return false
  if (!grantOn.card.includes(event.type) && !grantOn.crypto.includes(event.type)) return false
  return rails.get(event.paymentId ?? '')?.rail === 'unknown'
}
