/* What receivers are told: which events, in which generation, and with which faults on the way. */

import { DAY_MS } from './fields.js'
import type { Customer, Generation, Payment, SavedMethod, Subscription } from './model.js'
import { legacyPaymentData, legacySubscriptionData, settledData } from './views-v2.js'
import {
  API_VERSION,
  customerView,
  eventData,
  iso,
  methodView,
  paymentData,
  shown,
  subscriptionData,
} from './views-v3.js'
import type { World } from './world.js'

/** What each occurrence is called on the wire; null: that generation does not tell it. */
const TYPES = {
  'checkout.initiated': { v3: null, v2: 'CHECKOUT_INITIATED' },
  'checkout.succeeded': { v3: 'checkout.succeeded', v2: null },
  'checkout.failed': { v3: 'payment.failed', v2: 'CHECKOUT_FAILED' },
  'checkout.canceled': { v3: null, v2: 'CHECKOUT_CANCELED' },
  'payment.authorized': { v3: 'payment.authorized', v2: 'CHECKOUT_SUCCESS' },
  // A renewal is charged without its buyer, who authorizes no checkout.
  'renewal.authorized': { v3: 'payment.authorized', v2: null },
  'payment.succeeded': { v3: 'payment.succeeded', v2: 'PAYMENT_SUCCESS' },
  'payment.completed': { v3: 'payment.completed', v2: null },
  'payment.failed': { v3: 'payment.failed', v2: 'PAYMENT_FAILED' },
  'payment.canceled': { v3: 'payment.canceled', v2: 'CHECKOUT_CANCELED' },
  'payment.refunded': { v3: 'payment.refunded', v2: 'PAYMENT_REFUNDED' },
  'payment.partially_refunded': { v3: 'payment.partially_refunded', v2: 'PARTIAL_REFUNDED' },
  'payment.chargeback': { v3: 'payment.chargeback', v2: 'PAYMENT_CHARGEBACK' },
  'payment.settled': { v3: 'payment.settled', v2: null },
  // One payout of one payment: the legacy generation tells of both in one event.
  'payout.completed': { v3: 'payout.completed', v2: 'PAYMENT_SETTLED' },
  'payout.failed': { v3: 'payout.failed', v2: null },
  'subscription.created': { v3: 'subscription.created', v2: 'SUBSCRIPTION_CREATED' },
  'subscription.renewed': { v3: 'subscription.renewed', v2: 'SUBSCRIPTION_RENEWED' },
  'subscription.updated': { v3: 'subscription.updated', v2: null },
  'subscription.past_due': { v3: 'subscription.past_due', v2: 'SUBSCRIPTION_PAST_DUE' },
  // The legacy vocabulary has no cancellation.
  'subscription.canceled': { v3: 'subscription.canceled', v2: 'SUBSCRIPTION_EXPIRED' },
  'subscription.expired': { v3: 'subscription.expired', v2: 'SUBSCRIPTION_EXPIRED' },
  'customer.created': { v3: 'customer.created', v2: null },
  'customer.updated': { v3: 'customer.updated', v2: null },
  'customer.deleted': { v3: 'customer.deleted', v2: null },
  'payment_method.attached': { v3: 'payment_method.attached', v2: null },
  'payment_method.detached': { v3: 'payment_method.detached', v2: null },
} as const satisfies Record<string, Readonly<Record<Generation, string | null>>>

type Occurrence = keyof typeof TYPES
export type PaymentOccurrence = Extract<Occurrence, `${'checkout' | 'payment' | 'renewal'}.${string}`>
export type SubscriptionOccurrence = Extract<Occurrence, `subscription.${string}`>

const typesOf = (generation: Generation): readonly string[] => [
  ...new Set(Object.values(TYPES).flatMap((types) => types[generation] ?? [])),
]
/** Every type that an endpoint may ask for. */
export const EVENT_TYPES = { v3: typesOf('v3'), v2: typesOf('v2') }

export function tellPayment(world: World, occurrence: PaymentOccurrence, payment: Payment): void {
  tell(world, occurrence, (generation) => {
    if (generation === 'v2') return legacyPaymentData(payment, world)
    const data = paymentData(payment, world)
    if (occurrence !== 'checkout.succeeded') return data
    return { object: 'checkout_session', id: payment.sessionId, status: 'completed', payment: data }
  })
}

/** @param payment the newest payment of the subscription, which the legacy generation shows */
export function tellSubscription(
  world: World,
  occurrence: SubscriptionOccurrence,
  subscription: Subscription,
  payment: Payment | undefined,
): void {
  tell(world, occurrence, (generation) =>
    generation === 'v3'
      ? subscriptionData(subscription, world)
      : legacySubscriptionData(subscription, world, payment),
  )
}

export function tellCustomer(world: World, what: 'created' | 'updated' | 'deleted', customer: Customer) {
  tell(world, `customer.${what}`, () => eventData('customer', customerView(customer)))
}

export function tellMethod(world: World, what: 'attached' | 'detached', method: SavedMethod): void {
  tell(world, `payment_method.${what}`, () => eventData('payment_method', methodView(method)))
}

export function tellPayout(world: World, status: 'completed' | 'failed', payment: Payment): void {
  const { id: paymentId, merchantNetCents: amountCents, currency } = payment
  const id = world.makeId('pout')
  if (status === 'completed') tellPayment(world, 'payment.settled', payment)
  tell(world, `payout.${status}`, (generation) => {
    if (generation === 'v2') return settledData(payment, world, id)
    const { paymentSettledAt: paidOutAt } = shown(payment, 'paymentSettledAt')
    return eventData('payout', {
      ...{ id, status, amountCents, currency },
      ...(status === 'failed' ? { paymentId } : { paidOutAt }),
    })
  })
}

/** Far enough for a shuffle of all that happens in a day. */
const REORDER_MS = DAY_MS

/** Writes one delivery for each endpoint that wants the event. Endpoints of a generation get the same event. */
function tell(world: World, occurrence: Occurrence, dataFor: (generation: Generation) => object): void {
  const { now, settings, draw } = world
  const told = new Map<Generation, { readonly eventId: string; readonly event: string }>()
  for (const { id: endpointId, generation, isActive, enabledEvents } of world.endpoints()) {
    const type = TYPES[occurrence][generation]
    const isWanted = isActive && (enabledEvents.length === 0 || enabledEvents.some((one) => one === type))
    if (type === null || !isWanted) continue
    const eventId = told.get(generation)?.eventId ?? world.makeId('evt')
    const version = generation === 'v3' ? { api_version: API_VERSION, livemode: false } : {}
    const fields = () => ({ id: eventId, type, createdAt: iso(now), ...version, data: dataFor(generation) })
    const event = told.get(generation)?.event ?? JSON.stringify(fields())
    told.set(generation, { eventId, event })
    const id = world.makeId('del')
    const fault =
      settings.faults.find(({ endpoint }) => endpoint === endpointId) ??
      settings.faults.find(({ endpoint }) => endpoint === null)
    const happens = (what: string, chance = 0) => chance > 0 && draw(`${what} ${id}`) < chance
    const dueAt = now + (fault?.delay ?? 0)
    world.put('delivery', {
      ...{ id, endpointId, eventId, type, event, createdAt: now, dueAt },
      status: happens('drop', fault?.drop) ? 'dropped' : 'pending',
      place: fault?.reorder ? dueAt + draw(`reorder ${id}`) * REORDER_MS : dueAt,
      failures: 0,
      isDoubled: happens('duplicate', fault?.duplicate),
      isDamaged: happens('damage', fault?.damage),
      attempts: [],
    })
  }
}
