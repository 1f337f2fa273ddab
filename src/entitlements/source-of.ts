/* Which source an event belongs to, and which events link a payment to a subscription. */

import type { NormalizedEvent } from '../provider/event.js'
import { compareText } from '../provider/order.js'
import { manualSource } from './by-hand.js'
import { isGrantAct, type SourceKey } from './model.js'

/** A stored event's claim that a payment belongs to a subscription. */
export interface PaymentLink {
  readonly paymentId: string
  readonly subscriptionId: string
  /** `createdAt` and id of that event. */
  readonly linkedAt: number
  readonly linkedBy: string
}

/** The subscription of a payment according to the event, if it names one. */
export function linkOf(event: NormalizedEvent): PaymentLink | null {
  if (event.subject !== 'payment' && event.subject !== 'subscription') return null
  const { paymentId, subscriptionId, createdAt, id } = event
  if (paymentId === null || subscriptionId === null) return null
  return { paymentId, subscriptionId, linkedAt: createdAt, linkedBy: id }
}

/** If events disagree, the newest link counts; for the same event, its current reading. */
export function isNewerLink(a: PaymentLink, b: PaymentLink | undefined): boolean {
  if (b === undefined) return true
  const order = a.linkedAt - b.linkedAt || compareText(a.linkedBy, b.linkedBy)
  return order > 0 || (order === 0 && a.subscriptionId !== b.subscriptionId)
}

/**
 * The source that an event belongs to; null if it names none.
 * @param subscriptionOf the subscription linked to a payment by all events stored so far
 */
export function sourceOf(
  event: NormalizedEvent,
  subscriptionOf: (paymentId: string) => string | undefined,
): SourceKey | null {
  switch (event.subject) {
    case 'subscription':
      return subscriptionSource(event.subscriptionId)
    case 'payment':
      if (event.paymentId === null) return subscriptionSource(event.subscriptionId)
      return (
        subscriptionSource(subscriptionOf(event.paymentId) ?? null) ?? {
          kind: 'payment',
          id: event.paymentId,
        }
      )
    case 'manual':
      return isGrantAct(event) ? manualSource(event) : null
    case 'customer':
    case 'other':
      return null
    default:
      return event satisfies never
  }
}

/** One text for one source within an environment: ids of different kinds may be equal. */
export function sourceKey({ kind, id }: SourceKey): string {
  return `${kind} ${id}`
}

function subscriptionSource(id: string | null): SourceKey | null {
  return id === null ? null : { kind: 'subscription', id }
}
