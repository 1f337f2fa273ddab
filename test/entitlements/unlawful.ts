import fc from 'fast-check'
import type { CustomerEvent, PaymentEvent, SubscriptionEvent } from '../../src/provider/event.js'
import {
  CUSTOMER_EVENT_TYPES,
  PAYMENT_EVENT_TYPES,
  SUBSCRIPTION_EVENT_TYPES,
} from '../../src/provider/event-types.js'
import { customerEvent, minute, paymentEvent, subscriptionEvent } from './events.js'

/** Few instants, so that many are equal, just within 24 hours of each other, or just beyond. */
const HOURS = [0, 0, 1, 2, 12, 24, 25, 26, 48, 49, 73] as const
const instants = fc.constantFrom(...HOURS).map((hours) => minute(hours * 60))
const periodEnds = fc
  .constantFrom(null, ...HOURS, 100)
  .map((hours) => (hours === null ? null : minute(hours * 60)))

const proofs = fc.constantFrom(
  null,
  null,
  { rail: 'card', strength: 3 } as const,
  { rail: 'card', strength: 2 } as const,
  { rail: 'card', strength: 1 } as const,
  { rail: 'crypto', strength: 3 } as const,
  { rail: 'crypto', strength: 1 } as const,
)

const common = {
  createdAt: instants,
  customerId: fc.constantFrom('cus_1', 'cus_1', 'cus_2', null),
  productId: fc.constantFrom('pro_a', 'pro_b', 'pro_c', null),
}

const cycleNumbers = fc.constantFrom(null, 1, 2, 3)

/** Any payment event, of any of these payments, subscriptions and types. */
export function anyPaymentEvent(
  paymentIds: readonly (string | null)[],
  subscriptionIds: readonly (string | null)[],
  types: readonly PaymentEvent['type'][] = PAYMENT_EVENT_TYPES,
): fc.Arbitrary<PaymentEvent> {
  return fc
    .record({
      ...common,
      type: fc.constantFrom(...types),
      paymentId: fc.constantFrom(...paymentIds),
      subscriptionId: fc.constantFrom(...subscriptionIds),
      railProof: proofs,
    })
    .map(paymentEvent)
}

/** Any event of any of these subscriptions and types, naming any of these payments. */
export function anySubscriptionEvent(
  paymentIds: readonly (string | null)[],
  subscriptionIds: readonly (string | null)[],
  types: readonly SubscriptionEvent['type'][] = SUBSCRIPTION_EVENT_TYPES,
): fc.Arbitrary<SubscriptionEvent> {
  return fc
    .record({
      ...common,
      type: fc.constantFrom(...types),
      subscriptionId: fc.constantFrom(...subscriptionIds),
      paymentId: fc.constantFrom(...paymentIds),
      status: fc.constantFrom(null, 'active', 'past_due', 'trialing'),
      cycles: fc.option(fc.record({ current: cycleNumbers, total: cycleNumbers })),
      cancelAtPeriodEnd: fc.constantFrom(null, true, false),
      expiresAt: periodEnds,
    })
    .map(subscriptionEvent)
}

/** An event that pays for `sub_1`, fails to or pays back, by one of few payments of one rail. */
export const anyContendingPayment: fc.Arbitrary<PaymentEvent> = fc
  .record({
    createdAt: instants,
    type: fc.constantFrom(
      'payment.authorized',
      'payment.authorized',
      'payment.succeeded',
      'payment.failed',
      'payment.refunded',
    ),
    paymentId: fc.constantFrom('pay_1', 'pay_2', 'pay_3'),
    subscriptionId: fc.constant('sub_1'),
    rail: fc.constant('card'),
  })
  .map(paymentEvent)

/** An event of `sub_1` that decides what its access stands on, or what it gives, and sets no end. */
export const anyContendingCycle: fc.Arbitrary<SubscriptionEvent> = fc
  .record({
    createdAt: instants,
    type: fc.constantFrom(
      'subscription.created',
      'subscription.renewed',
      'subscription.renewed',
      'subscription.updated',
      'subscription.expired',
    ),
    productId: fc.constantFrom('pro_a', 'pro_b'),
    paymentId: fc.constantFrom(null, null, 'pay_1', 'pay_2', 'pay_3'),
  })
  .map(subscriptionEvent)

/** Any event about a person, which belongs to no source. */
export const anyCustomerEvent: fc.Arbitrary<CustomerEvent> = fc
  .record({
    createdAt: instants,
    customerId: fc.constantFrom('cus_1', 'cus_2'),
    type: fc.constantFrom(...CUSTOMER_EVENT_TYPES),
  })
  .map(customerEvent)

/** Gives every event an id of its own, which says nothing about its time. */
export function withOwnIds<E extends { readonly id: string }>(events: readonly E[]): E[] {
  return events.map((event, index) => ({ ...event, id: `evt_${index}` }))
}
