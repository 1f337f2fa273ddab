import { customerOf, flatPersonFields, flatPersonOf, person } from './customer.js'
import type { Envelope } from './envelope.js'
import type { CustomerEvent, NormalizedEvent, SubscriptionEvent } from './event.js'
import type { CustomerEventType, SubscriptionEventType } from './event-types.js'
import { anything, eitherCasing, flag, id, instant, integer, text } from './fields.js'
import { readMetadata } from './metadata.js'
import { otherEvent } from './other-event.js'
import { paymentEventV3 } from './payment-v3.js'
import { isCustomerType, isPaymentType, isSubscriptionType } from './subject.js'

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
  if (isPaymentType(type)) return paymentEventV3(envelope, type)
  if (isSubscriptionType(type)) return subscriptionEvent(envelope, type)
  if (isCustomerType(type)) return customerEvent(envelope, type)
  return otherEvent(envelope)
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
