import { customerOf, flatPersonFields, flatPersonOf, person } from './customer.js'
import type { Envelope } from './envelope.js'
import type { NormalizedEvent, PaymentEvent, SubscriptionEvent } from './event.js'
import {
  CANONICAL_TYPE_OF_V2,
  type PaymentEventType,
  type SubscriptionEventType,
  type V2EventType,
} from './event-types.js'
import { anything, eitherCasing, id, instant, readMetadata, text } from './fields.js'
import { otherEvent } from './other-event.js'
import { legacyRailFields, proveRail } from './rail.js'
import { isPaymentType } from './subject.js'

const context = eitherCasing({ externalRef: text, metadata: anything })

const v2Payment = eitherCasing({
  payment: eitherCasing({
    id,
    subscriptionId: id,
    productId: id,
    ...flatPersonFields,
    ...legacyRailFields,
  }),
  context,
})
type V2Payment = ReturnType<typeof v2Payment>

const v2Subscription = eitherCasing({
  subscription: eitherCasing({ id, status: text, productId: id, expiresAt: instant }),
  lastPayment: id,
  customer: person,
  context,
})
type V2Subscription = ReturnType<typeof v2Subscription>

/** An event of the legacy generation. `PAYMENT_SETTLED`, about many payments at once, stays under its own name. */
export function normaliseV2(envelope: Envelope): NormalizedEvent {
  if (!isKnownType(envelope.type)) return otherEvent(envelope)
  const type = CANONICAL_TYPE_OF_V2[envelope.type]
  return isPaymentType(type)
    ? paymentEvent(envelope, type, v2Payment(envelope.data))
    : subscriptionEvent(envelope, type, v2Subscription(envelope.data))
}

function isKnownType(type: string): type is V2EventType {
  return Object.hasOwn(CANONICAL_TYPE_OF_V2, type)
}

function paymentEvent(envelope: Envelope, type: PaymentEventType, data: V2Payment): PaymentEvent {
  const { payment, context } = data
  const { customerId, customer } = customerOf([flatPersonOf(payment)])
  const { id, generation, createdAt, apiVersion } = envelope
  return {
    id,
    generation,
    createdAt,
    apiVersion,
    subject: 'payment',
    type,
    paymentId: payment.id,
    subscriptionId: payment.subscriptionId,
    productId: payment.productId,
    customerId,
    customer,
    railProof: proveRail(envelope.type, [payment]),
    externalRef: context.externalRef ?? null,
    metadata: readMetadata(context.metadata),
  }
}

function subscriptionEvent(
  envelope: Envelope,
  type: SubscriptionEventType,
  data: V2Subscription,
): SubscriptionEvent {
  const { subscription, lastPayment, context } = data
  const { customerId, customer } = customerOf([data.customer])
  const { id, generation, createdAt, apiVersion } = envelope
  return {
    id,
    generation,
    createdAt,
    apiVersion,
    subject: 'subscription',
    type,
    subscriptionId: subscription.id,
    paymentId: lastPayment,
    productId: subscription.productId,
    customerId,
    customer,
    status: subscription.status?.toLowerCase() ?? null,
    cycles: null,
    cancelAtPeriodEnd: null,
    expiresAt: subscription.expiresAt,
    externalRef: context.externalRef ?? null,
    metadata: readMetadata(context.metadata),
  }
}
