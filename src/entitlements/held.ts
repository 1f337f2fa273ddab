import type { Rail } from '../provider/event.js'
import type { HoldReason } from './model.js'
import { compareByTime } from './order.js'
import type { Policy } from './policy.js'
import { railIn, railsOfPayments } from './rail.js'
import { isDecisive, onlyInforms, type SourceEvent } from './reading.js'

/** What a source's events have told so far; null where none has. */
export interface Known {
  readonly customerId: string | null
  readonly productId: string | null
}

/** Those events of a source that wait for something that no event has told yet, and for what. */
export function heldEvents(
  events: readonly SourceEvent[],
  known: Known,
  policy: Policy,
): Record<string, HoldReason> {
  // Of most sources none can wait.
  if (known.customerId !== null && known.productId !== null && !events.some(isCheckout)) return {}
  const suspects = events.filter((event) => holdOf(event, known, 'unknown', policy) !== null)
  if (suspects.length === 0) return {}
  const rails = railsOfPayments(events)
  // In one order, so that the same set of events is saved as the same text.
  const held = suspects.sort(compareByTime).flatMap((event) => {
    const reason = holdOf(event, known, railIn(rails.get(event.paymentId ?? '')), policy)
    return reason === null ? [] : [[event.id, reason] as const]
  })
  return Object.fromEntries(held)
}

/** What one event waits for; null: for nothing. `rail` is that of its payment. */
export function holdOf(event: SourceEvent, known: Known, rail: Rail, policy: Policy): HoldReason | null {
  if (!isDecisive(event.type, policy) || onlyInforms(event)) return null
  if (known.customerId === null) return 'customer_unknown'
  if (known.productId === null) return 'product_unknown'
  return rail === 'unknown' && isBareCheckout(event, policy) ? 'rail_unknown' : null
}

/** A completed checkout proves no money on its own; a proof of the rail decides what it is worth. */
function isBareCheckout(event: SourceEvent, { grantOn }: Policy): boolean {
  if (!isCheckout(event) || grantOn.unknown.includes('checkout.succeeded')) return false
  return grantOn.card.includes('checkout.succeeded') || grantOn.crypto.includes('checkout.succeeded')
}

function isCheckout({ type }: SourceEvent): boolean {
  return type === 'checkout.succeeded'
}
