import { detailsOf, flatCustomerIdOf, personOf } from './customer.js'
import type { Envelope, TypeReader } from './envelope.js'
import type { PaymentEvent, SubscriptionEvent } from './event.js'
import { CANONICAL_TYPE_OF_V2, type PaymentEventType, type SubscriptionEventType } from './event-types.js'
import { fieldsOf, id, instant, NO_FIELDS, readMetadata, text } from './fields.js'
import { fieldProof, methodProof, sourceProof, typeProof } from './rail.js'

/** How events of the legacy generation are read. `PAYMENT_SETTLED`, about many payments at once, is left out. */
export const V2_TYPES: readonly TypeReader[] = Object.entries(CANONICAL_TYPE_OF_V2).map(([wireType, type]) =>
  isSubscriptionType(type)
    ? [wireType, (envelope) => subscriptionEvent(envelope, type)]
    : [wireType, (envelope) => paymentEvent(envelope, type)],
)

function isSubscriptionType(type: PaymentEventType | SubscriptionEventType): type is SubscriptionEventType {
  return type.startsWith('subscription.')
}

function paymentEvent(envelope: Envelope, type: PaymentEventType): PaymentEvent {
  const data = fieldsOf(envelope.data)
  const payment = fieldsOf(data.payment)
  const context = fieldsOf(data.context)
  return {
    id: envelope.id,
    generation: 'v2',
    createdAt: envelope.createdAt,
    apiVersion: envelope.apiVersion,
    subject: 'payment',
    type,
    paymentId: id(payment.id),
    subscriptionId: id(payment.subscriptionId, payment.subscription_id),
    productId: id(payment.productId, payment.product_id),
    customerId: flatCustomerIdOf(payment),
    customer: detailsOf(NO_FIELDS, payment),
    railProof:
      methodProof(payment) ??
      sourceProof(payment) ??
      typeProof(envelope.type) ??
      fieldProof(payment, NO_FIELDS),
    externalRef: text(context.externalRef, context.external_ref),
    metadata: readMetadata(context.metadata),
  }
}

function subscriptionEvent(envelope: Envelope, type: SubscriptionEventType): SubscriptionEvent {
  const data = fieldsOf(envelope.data)
  const subscription = fieldsOf(data.subscription)
  const person = personOf(data.customer)
  const context = fieldsOf(data.context)
  return {
    id: envelope.id,
    generation: 'v2',
    createdAt: envelope.createdAt,
    apiVersion: envelope.apiVersion,
    subject: 'subscription',
    type,
    subscriptionId: id(subscription.id),
    paymentId: id(data.lastPayment, data.last_payment),
    productId: id(subscription.productId, subscription.product_id),
    customerId: id(person.id),
    customer: detailsOf(person, NO_FIELDS),
    status: text(subscription.status)?.toLowerCase() ?? null,
    cycles: null,
    cancelAtPeriodEnd: null,
    expiresAt: instant(subscription.expiresAt, subscription.expires_at),
    externalRef: text(context.externalRef, context.external_ref),
    metadata: readMetadata(context.metadata),
  }
}
