/* Folds all events of one source, of any kind, into its state. */

import type { Rail } from '../provider/event.js'
import { compareByTime, newestValue } from '../provider/order.js'
import { foldGrants } from './by-hand.js'
import type { FoldableEvent, HoldReason, SourceEvent, SourceKey, SourceState } from './model.js'
import { isDecisive, onlyInforms, type Policy } from './policy.js'
import { readPayment, readSubscription } from './reading.js'
import type { Observe } from './reasons.js'
import { walk } from './walk.js'

/**
 * Folds the events of one source into its state.
 *
 * Deliveries come late, twice and out of order, so events are walked in (createdAt, rank, id) order,
 * in any order of arrival. Same set and policy: same state.
 * @param events all stored events of the source, each once, in any order
 * @param observe receives every step, in order; if omitted, no steps are collected
 */
export function foldSource(
  { kind, id }: SourceKey,
  events: readonly FoldableEvent[],
  policy: Policy,
  observe?: Observe,
): SourceState {
  const customerId = newestValue(events, (event) => event.customerId)
  let newestAt = Number.NEGATIVE_INFINITY
  for (const { createdAt } of events) newestAt = Math.max(newestAt, createdAt)
  const sent = events.filter((event) => event.subject !== 'manual')
  const whole = kind === 'subscription' ? readSubscription(sent, policy) : readPayment(sent, policy)
  const { productId, intervals, terms, cyclesWithoutPayment } = walk(whole, policy, observe)
  const state: SourceState = {
    kind,
    id,
    customerId,
    newestAt,
    held: heldEvents(sent, { customerId, productId }, whole.railOf, policy),
    rail: whole.rail,
    intervals,
    ...terms.shown,
    cyclesWithoutPayment,
  }
  return kind === 'manual'
    ? {
        ...state,
        ...foldGrants(
          events.filter((event) => event.subject === 'manual'),
          observe,
        ),
      }
    : state
}

/** The events of a source that wait for something that no event says yet, and for what. */
function heldEvents(
  events: readonly SourceEvent[],
  { customerId, productId }: { readonly customerId: string | null; readonly productId: string | null },
  railOf: (event: SourceEvent) => Rail,
  policy: Policy,
): Record<string, HoldReason> {
  const reason =
    customerId === null ? 'customer_unknown' : productId === null ? 'product_unknown' : 'rail_unknown'
  // Most sources have none that can wait.
  if (reason === 'rail_unknown' && !events.some(isCheckout)) return {}
  const waits = (event: SourceEvent): boolean =>
    isDecisive(event.type, policy) &&
    !onlyInforms(event) &&
    (reason !== 'rail_unknown' || (isBareCheckout(event, policy) && railOf(event) === 'unknown'))
  // Sorted, so that the same set of events is stored as the same text.
  const held = events.filter(waits).sort(compareByTime)
  return Object.fromEntries(held.map(({ id }) => [id, reason]))
}

/** A completed checkout alone does not prove that money was paid; the proof of its rail decides. */
function isBareCheckout(event: SourceEvent, { grantOn }: Policy): boolean {
  if (!isCheckout(event) || grantOn.unknown.includes('checkout.succeeded')) return false
  return grantOn.card.includes('checkout.succeeded') || grantOn.crypto.includes('checkout.succeeded')
}

function isCheckout({ type }: SourceEvent): boolean {
  return type === 'checkout.succeeded'
}
