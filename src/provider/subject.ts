import {
  CUSTOMER_EVENT_TYPES,
  type CustomerEventType,
  PAYMENT_EVENT_TYPES,
  type PaymentEventType,
  SUBSCRIPTION_EVENT_TYPES,
  type SubscriptionEventType,
} from './event-types.js'

const PAYMENT_TYPES: ReadonlySet<string> = new Set(PAYMENT_EVENT_TYPES)
const SUBSCRIPTION_TYPES: ReadonlySet<string> = new Set(SUBSCRIPTION_EVENT_TYPES)
const CUSTOMER_TYPES: ReadonlySet<string> = new Set(CUSTOMER_EVENT_TYPES)

/*
 * What an event is about follows from its type alone. A type that is not in the vocabulary is about nothing
 * known, even if its first word is.
 */

export function isPaymentType(type: string): type is PaymentEventType {
  return PAYMENT_TYPES.has(type)
}

export function isSubscriptionType(type: string): type is SubscriptionEventType {
  return SUBSCRIPTION_TYPES.has(type)
}

export function isCustomerType(type: string): type is CustomerEventType {
  return CUSTOMER_TYPES.has(type)
}
