/* The fields of an event that the rules read, and the differences between types. */

import type { ManualEvent, PaymentEvent, SubscriptionEvent } from '../provider/event.js'
import type { EndReason } from './model.js'

/** The fields of a payment event that the rules read. A source stores these, and no more. */
export type KeptPayment = Pick<
  PaymentEvent,
  'subject' | 'id' | 'type' | 'createdAt' | 'customerId' | 'productId' | 'paymentId' | 'railProof'
>

/** The same for a subscription event. */
export type KeptSubscription = Pick<
  SubscriptionEvent,
  Exclude<keyof KeptPayment, 'railProof'> | 'status' | 'cycles' | 'cancelAtPeriodEnd' | 'expiresAt'
>

/** Types that the provider sends: the policy decides their effect. */
export type SourceEvent = KeptPayment | KeptSubscription

/** A grant by hand, or its revocation: the only changes by hand that form a source. */
export interface GrantAct extends Pick<ManualEvent, 'subject' | 'id' | 'createdAt' | 'customerId' | 'until'> {
  readonly type: 'manual.granted' | 'manual.revoked'
  readonly productId: string
}

/** The events that form sources, of every kind. */
export type FoldableEvent = SourceEvent | GrantAct

export function isGrantAct(event: ManualEvent): event is ManualEvent & GrantAct {
  const isGrant = event.type === 'manual.granted' || event.type === 'manual.revoked'
  return isGrant && event.productId !== null
}

interface TypeFacts {
  /** The code of the type in a source's history. */
  readonly code: string
  /** Why access ended, if an event of the type ended it. */
  readonly ends: EndReason
  /** The name of the type in an explanation. */
  readonly name: string
}

export const PAYMENT_TYPES: Readonly<Record<KeptPayment['type'], TypeFacts>> = {
  'payment.authorized': { code: 'pa', ends: 'failed', name: 'Authorization' },
  'payment.succeeded': { code: 'ps', ends: 'failed', name: 'Success' },
  'payment.completed': { code: 'pc', ends: 'failed', name: 'Completion' },
  'payment.failed': { code: 'pf', ends: 'failed', name: 'Failure' },
  'payment.canceled': { code: 'px', ends: 'voided', name: 'Voiding' },
  'payment.refunded': { code: 'pr', ends: 'refunded', name: 'Refund' },
  'payment.partially_refunded': { code: 'pp', ends: 'refunded', name: 'Partial refund' },
  'payment.chargeback': { code: 'pb', ends: 'charged_back', name: 'Chargeback' },
  'payment.settled': { code: 'pt', ends: 'failed', name: 'Settlement' },
  'checkout.initiated': { code: 'ci', ends: 'failed', name: 'Begun checkout' },
  'checkout.succeeded': { code: 'cs', ends: 'failed', name: 'Completed checkout' },
  'checkout.failed': { code: 'cf', ends: 'failed', name: 'Failed checkout' },
  'checkout.canceled': { code: 'cx', ends: 'voided', name: 'Canceled checkout' },
}

export const SUBSCRIPTION_TYPES: Readonly<Record<KeptSubscription['type'], TypeFacts>> = {
  'subscription.created': { code: 'sc', ends: 'expired', name: 'Start' },
  'subscription.renewed': { code: 'sr', ends: 'expired', name: 'Renewal' },
  'subscription.updated': { code: 'su', ends: 'expired', name: 'Update' },
  'subscription.past_due': { code: 'sp', ends: 'expired', name: 'Overdue notice' },
  'subscription.canceled': { code: 'sx', ends: 'canceled', name: 'Cancellation' },
  'subscription.expired': { code: 'se', ends: 'expired', name: 'Expiry' },
}

export const MANUAL_TYPES: Readonly<Record<GrantAct['type'], TypeFacts>> = {
  'manual.granted': { code: 'mg', ends: 'revoked', name: 'Grant by hand' },
  'manual.revoked': { code: 'mr', ends: 'revoked', name: 'End of the grant by hand' },
}

/** All of them. */
export const TYPES = { ...PAYMENT_TYPES, ...SUBSCRIPTION_TYPES, ...MANUAL_TYPES }
