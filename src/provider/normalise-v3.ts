import { customerIdOf, customerOf, detailsOf, firstDetails, personOf } from './customer.js'
import type { Envelope, TypeReader } from './envelope.js'
import type { CustomerEvent, PaymentEvent, SubscriptionEvent } from './event.js'
import {
  CUSTOMER_EVENT_TYPES,
  type CustomerEventType,
  PAYMENT_EVENT_TYPES,
  PAYMENT_REPORTED,
  SUBSCRIPTION_EVENT_TYPES,
  SUBSCRIPTION_REPORTED,
} from './event-types.js'
import { fieldsOf, flag, id, instant, integer, NO_FIELDS, readMetadata, text } from './fields.js'
import { isJsonObject, type JsonObject } from './json.js'
import { fieldProof, methodProof, typeProof } from './rail.js'

/** How events of the current generation are read; its types are the canonical ones. */
export const V3_TYPES: readonly TypeReader[] = [
  ...PAYMENT_EVENT_TYPES.map((type): TypeReader => [type, (envelope) => paymentEvent(envelope, type)]),
  ...SUBSCRIPTION_EVENT_TYPES.map(
    (type): TypeReader => [type, (envelope) => subscriptionEvent(envelope, type)],
  ),
  ...CUSTOMER_EVENT_TYPES.map((type): TypeReader => [type, (envelope) => customerEvent(envelope, type)]),
]

/** The same for the types that only Latchkey's own reports have. */
export const REPORTED_TYPES: readonly TypeReader[] = [
  [PAYMENT_REPORTED, (envelope) => paymentEvent(envelope, PAYMENT_REPORTED)],
  [SUBSCRIPTION_REPORTED, (envelope) => subscriptionEvent(envelope, SUBSCRIPTION_REPORTED)],
]

/**
 * A payment or a hosted checkout. A checkout may contain its payment as an object with these same fields, which fills
 * in the fields missing from the data itself.
 */
function paymentEvent(envelope: Envelope, type: PaymentEvent['type']): PaymentEvent {
  const data = fieldsOf(envelope.data)
  const inner = fieldsOf(data.payment)
  return {
    id: envelope.id,
    generation: 'v3',
    createdAt: envelope.createdAt,
    apiVersion: envelope.apiVersion,
    subject: 'payment',
    type,
    paymentId: ownPaymentId(type, data) ?? paymentIdOf(data),
    subscriptionId: subscriptionIdOf(data) ?? subscriptionIdOf(inner),
    productId: productIdOf(data) ?? productIdOf(inner),
    customerId: customerIdOf(data) ?? customerIdOf(inner),
    customer: isJsonObject(data.payment)
      ? firstDetails(customerOf(data), customerOf(inner))
      : customerOf(data),
    railProof: methodProof(data) ?? methodProof(inner) ?? typeProof(type) ?? fieldProof(data, inner),
    externalRef: externalRefOf(data) ?? externalRefOf(inner),
    metadata: readMetadata(data.metadata ?? inner.metadata),
  }
}

/** The `id` of a checkout may be its session's: only the prefix shows whether it is the payment's. */
function ownPaymentId(type: PaymentEvent['type'], data: JsonObject): string | null {
  const own = id(data.id)
  return type.startsWith('checkout.') && !own?.startsWith('pay_') ? null : own
}

function subscriptionEvent(envelope: Envelope, type: SubscriptionEvent['type']): SubscriptionEvent {
  const data = fieldsOf(envelope.data)
  return {
    id: envelope.id,
    generation: 'v3',
    createdAt: envelope.createdAt,
    apiVersion: envelope.apiVersion,
    subject: 'subscription',
    type,
    subscriptionId: id(data.id) ?? subscriptionIdOf(data),
    paymentId:
      paymentIdOf(data) ??
      id(data.lastPayment, data.last_payment) ??
      id(data.lastPaymentId, data.last_payment_id),
    productId: productIdOf(data),
    customerId: customerIdOf(data),
    customer: customerOf(data),
    status: text(data.status)?.toLowerCase() ?? null,
    cycles: cyclesOf(data),
    cancelAtPeriodEnd: flag(data.cancelAtPeriodEnd, data.cancel_at_period_end),
    expiresAt:
      instant(data.expiresAt, data.expires_at) ?? instant(data.currentCycleDueAt, data.current_cycle_due_at),
    externalRef: externalRefOf(data),
    metadata: readMetadata(data.metadata),
  }
}

/** `total_cycles: null` means that there is no last cycle; a missing field means nothing. */
function cyclesOf(data: JsonObject): SubscriptionEvent['cycles'] {
  const current = integer(data.currentCycle, data.current_cycle)
  const total = integer(data.totalCycles, data.total_cycles)
  return current === undefined || total === undefined ? null : { current, total }
}

/** The data is the customer, who may be one level down. */
function customerEvent(envelope: Envelope, type: CustomerEventType): CustomerEvent {
  const data = fieldsOf(envelope.data)
  const person = personOf(envelope.data)
  return {
    id: envelope.id,
    generation: 'v3',
    createdAt: envelope.createdAt,
    apiVersion: envelope.apiVersion,
    subject: 'customer',
    type,
    customerId: id(person.id) ?? customerIdOf(data),
    customer: firstDetails(detailsOf(person, NO_FIELDS), customerOf(data)),
    productId: null,
    externalRef: externalRefOf(data),
    metadata: readMetadata(data.metadata),
  }
}

function paymentIdOf(data: JsonObject): string | null {
  return id(data.payment) ?? id(data.paymentId, data.payment_id)
}

function subscriptionIdOf(data: JsonObject): string | null {
  return id(data.subscription) ?? id(data.subscriptionId, data.subscription_id)
}

function productIdOf(data: JsonObject): string | null {
  return id(data.product) ?? id(data.productId, data.product_id)
}

function externalRefOf(data: JsonObject): string | null {
  return text(data.externalRef, data.external_ref)
}
