import type { Erasure } from './erasures.js'
import type { FoldableEvent } from './fold-source.js'
import type { EndReason, HoldReason, SourceKey } from './model.js'

/** How each type is called. A type that the documents never let end or begin access is named all the same. */
const NAME_OF: Readonly<Record<FoldableEvent['type'], string>> = {
  'payment.authorized': 'Authorization',
  'payment.succeeded': 'Success',
  'payment.completed': 'Completion',
  'payment.failed': 'Failure',
  'payment.canceled': 'Voiding',
  'payment.refunded': 'Refund',
  'payment.partially_refunded': 'Partial refund',
  'payment.chargeback': 'Chargeback',
  'payment.settled': 'Settlement',
  'checkout.initiated': 'Begun checkout',
  'checkout.succeeded': 'Completed checkout',
  'checkout.failed': 'Failed checkout',
  'checkout.canceled': 'Canceled checkout',
  'subscription.created': 'Start',
  'subscription.renewed': 'Renewal',
  'subscription.updated': 'Update',
  'subscription.past_due': 'Overdue notice',
  'subscription.canceled': 'Cancellation',
  'subscription.expired': 'Expiry',
  'manual.granted': 'Grant by hand',
  'manual.revoked': 'End of the grant by hand',
}

/** `Refund of pay_1`: what happened, and to what. */
export function headingOf(event: FoldableEvent, source: SourceKey | null): string {
  const about = aboutOf(event, source)
  return about === null ? NAME_OF[event.type] : `${NAME_OF[event.type]} of ${about}`
}

function aboutOf(event: FoldableEvent, source: SourceKey | null): string | null {
  switch (event.subject) {
    case 'payment':
      return event.paymentId
    case 'subscription':
      return source?.id ?? null
    case 'manual':
      return null
    default:
      return event satisfies never
  }
}

/** What a held event waits for. */
export const HOLD_REASON_TEXT: Readonly<Record<HoldReason, string>> = {
  source_unknown: 'waits, since it names neither a payment nor a subscription',
  customer_unknown: 'waits until an event tells whose it is',
  product_unknown: 'waits until an event tells which product it is for',
  rail_unknown:
    'waits until an event tells how it was paid, since a completed checkout alone proves no money',
}

/** Why access ended, or will end. */
export const END_REASON_TEXT: Readonly<Record<EndReason, string>> = {
  failed: 'the payment failed',
  refunded: 'the payment was refunded',
  charged_back: 'the payment was charged back',
  voided: 'the payment was called off',
  expired: 'the subscription expired',
  canceled: 'the subscription was canceled',
  completed: 'its fixed time is over',
  lapsed: 'no renewal came in time',
  moved: 'the plan was changed to another product',
  revoked: 'it was taken back by hand',
}

/** The same of one end: what an erasure ended was not taken back for itself. */
export function endText(
  { reason, eventId }: { readonly reason: EndReason; readonly eventId: string },
  erasures: readonly Erasure[],
): string {
  const isErasure = erasures.some((erasure) => erasure.eventId === eventId)
  return isErasure ? 'the customer was erased' : END_REASON_TEXT[reason]
}

/** What people call a source; of what was granted by hand, the id says nothing that they don't know. */
export function nameOfSource({ kind, id }: SourceKey): string {
  return kind === 'manual' ? 'a grant by hand' : `${kind} ${id}`
}

/** ISO 8601, in UTC. */
export function time(instant: number): string {
  return new Date(instant).toISOString()
}
