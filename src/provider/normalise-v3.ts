import { customerOf, flatPersonFields, flatPersonOf, person } from './customer.js'
import type { Envelope } from './envelope.js'
import type { CustomerEvent, NormalizedEvent, PaymentEvent, SubscriptionEvent } from './event.js'
import type { CustomerEventType, PaymentEventType, SubscriptionEventType } from './event-types.js'
import { anything, eitherCasing, flag, id, instant, integer, readMetadata, text } from './fields.js'
import { shownId } from './ids.js'
import { isJsonObject } from './json.js'
import { otherEvent } from './other-event.js'
import { proveRail, railFields } from './rail.js'
import { isCustomerType, isPaymentType, isSubscriptionType } from './subject.js'

/** Payments and hosted checkouts alike: a checkout may hold its payment as an object with these same fields. */
const v3Payment = eitherCasing({
  id,
  payment: anything,
  paymentId: id,
  subscription: id,
  subscriptionId: id,
  product: id,
  productId: id,
  customer: person,
  ...flatPersonFields,
  ...railFields,
  externalRef: text,
  metadata: anything,
})
type V3Payment = ReturnType<typeof v3Payment>

const NOTHING_SHOWN = v3Payment({})

const v3Subscription = eitherCasing({
  id,
  subscription: id,
  subscriptionId: id,
  payment: id,
  paymentId: id,
  lastPayment: id,
  lastPaymentId: id,
  product: id,
  productId: id,
  customer: person,
  ...flatPersonFields,
  status: text,
  currentCycle: integer,
  totalCycles: integer,
  cancelAtPeriodEnd: flag,
  expiresAt: instant,
  currentCycleDueAt: instant,
  externalRef: text,
  metadata: anything,
})
type V3Subscription = ReturnType<typeof v3Subscription>

/** The data of a customer event is the customer, maybe one level down. */
const v3Customer = eitherCasing({
  customer: person,
  ...flatPersonFields,
  externalRef: text,
  metadata: anything,
})

/** An event of the current generation, whose types are the canonical ones. */
export function normaliseV3(envelope: Envelope): NormalizedEvent {
  const { type } = envelope
  if (isPaymentType(type)) return paymentEvent(envelope, type)
  if (isSubscriptionType(type)) return subscriptionEvent(envelope, type)
  if (isCustomerType(type)) return customerEvent(envelope, type)
  return otherEvent(envelope)
}

/** A v3 payment or checkout event. What its data does not show itself, the payment within may. */
function paymentEvent(envelope: Envelope, type: PaymentEventType): PaymentEvent {
  const data = v3Payment(envelope.data)
  const inner = isJsonObject(data.payment) ? v3Payment(data.payment) : NOTHING_SHOWN
  const { customerId, customer } = customerOf([
    data.customer,
    flatPersonOf(data),
    inner.customer,
    flatPersonOf(inner),
  ])
  const { id, generation, createdAt, apiVersion } = envelope
  return {
    id,
    generation,
    createdAt,
    apiVersion,
    subject: 'payment',
    type,
    paymentId: ownPaymentId(type, data) ?? shownId(data.payment) ?? data.paymentId,
    subscriptionId: subscriptionOf(data) ?? subscriptionOf(inner),
    productId: productOf(data) ?? productOf(inner),
    customerId,
    customer,
    railProof: proveRail(envelope.type, [data, inner]),
    externalRef: data.externalRef ?? inner.externalRef ?? null,
    metadata: readMetadata(data.metadata ?? inner.metadata),
  }
}

/** A checkout's `id` may be its session's: only the prefix tells whether it is the payment's. */
function ownPaymentId(type: PaymentEventType, { id }: V3Payment): string | null {
  return type.startsWith('checkout.') && !id?.startsWith('pay_') ? null : id
}

function subscriptionOf({ subscription, subscriptionId }: V3Payment): string | null {
  return subscription ?? subscriptionId
}

function productOf({ product, productId }: V3Payment): string | null {
  return product ?? productId
}

function subscriptionEvent(envelope: Envelope, type: SubscriptionEventType): SubscriptionEvent {
  const data = v3Subscription(envelope.data)
  const { customerId, customer } = customerOf([data.customer, flatPersonOf(data)])
  const { id, generation, createdAt, apiVersion } = envelope
  return {
    id,
    generation,
    createdAt,
    apiVersion,
    subject: 'subscription',
    type,
    subscriptionId: data.id ?? data.subscription ?? data.subscriptionId,
    paymentId: data.payment ?? data.paymentId ?? data.lastPayment ?? data.lastPaymentId,
    productId: data.product ?? data.productId,
    customerId,
    customer,
    status: data.status?.toLowerCase() ?? null,
    cycles: cyclesOf(data),
    cancelAtPeriodEnd: data.cancelAtPeriodEnd ?? null,
    expiresAt: data.expiresAt ?? data.currentCycleDueAt,
    externalRef: data.externalRef ?? null,
    metadata: readMetadata(data.metadata),
  }
}

/** `total_cycles: null` says that there is no last cycle, which its absence does not. */
function cyclesOf({ currentCycle, totalCycles }: V3Subscription): SubscriptionEvent['cycles'] {
  if (currentCycle === undefined || totalCycles === undefined) return null
  return { current: currentCycle, total: totalCycles }
}

function customerEvent(envelope: Envelope, type: CustomerEventType): CustomerEvent {
  const data = v3Customer(envelope.data)
  const { customerId, customer } = customerOf([person(envelope.data), data.customer, flatPersonOf(data)])
  const { id, generation, createdAt, apiVersion } = envelope
  return {
    id,
    generation,
    createdAt,
    apiVersion,
    subject: 'customer',
    type,
    customerId,
    customer,
    productId: null,
    externalRef: data.externalRef ?? null,
    metadata: readMetadata(data.metadata),
  }
}
