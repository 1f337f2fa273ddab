/* What receivers are told: which events, in which generation, and with which faults on the way. */

import type { Generation } from '../provider/event.js'
import type { CustomerEventType, PaymentEventType, SentEventType } from '../provider/event-types.js'
import { wireTypeOf } from '../provider/event-types.js'
import { writeEvent } from '../provider/wire-event.js'
import { type Customer, DAY_MS, type Payment, type SavedMethod, type Subscription } from './model.js'
import { legacyPaymentEvent, legacySubscriptionEvent, settledEvent } from './views-v2.js'
import { customerView, methodView, paymentData, shown, subscriptionData } from './views-v3.js'
import type { World } from './world.js'

/** A renewal is charged without its buyer, who authorizes no checkout. */
export type PaymentOccurrence = PaymentEventType | 'renewal.authorized'
type Occurrence = PaymentOccurrence | SentEventType

/** Where a generation has a word of another type for an occurrence; null: it does not tell it. */
const OTHER_TYPES: Partial<Record<Occurrence, Partial<Record<Generation, string | null>>>> = {
  'checkout.succeeded': { v2: null },
  'checkout.failed': { v3: 'payment.failed' },
  'payment.authorized': { v2: 'CHECKOUT_SUCCESS' },
  'renewal.authorized': { v3: 'payment.authorized' },
  'payment.canceled': { v2: 'CHECKOUT_CANCELED' },
  // One payout of one payment: the legacy generation tells of both in one event.
  'payout.completed': { v2: 'PAYMENT_SETTLED' },
  // The legacy vocabulary has no cancellation.
  'subscription.canceled': { v2: 'SUBSCRIPTION_EXPIRED' },
}

function typeOf(occurrence: Occurrence, generation: Generation): string | null {
  const other = OTHER_TYPES[occurrence]?.[generation]
  return other === undefined ? (wireTypeOf(occurrence, generation) ?? null) : other
}

// Each tells of a record, and gives it back

export function tellPayment(world: World, occurrence: PaymentOccurrence, payment: Payment): Payment {
  const v3 = (): object => {
    const data = paymentData(payment, world)
    if (occurrence !== 'checkout.succeeded') return data
    return { object: 'checkout_session', id: payment.sessionId, status: 'completed', payment: data }
  }
  tell(world, occurrence, v3, () => legacyPaymentEvent(payment, world))
  return payment
}

type SubscriptionType = Extract<SentEventType, `subscription.${string}`>

/** @param last the newest payment of the subscription, which the legacy generation shows */
export function tellSubscription(world: World, type: SubscriptionType, about: Subscription, last?: Payment) {
  const v2 = () => legacySubscriptionEvent(about, world, last)
  tell(world, type, () => subscriptionData(about, world), v2)
  return about
}

export function tellCustomer(world: World, occurrence: CustomerEventType, customer: Customer): Customer {
  tell(world, occurrence, () => ({ object: 'customer', ...customerView(customer) }))
  return customer
}

export function tellMethod(world: World, what: 'attached' | 'detached', method: SavedMethod): SavedMethod {
  tell(world, `payment_method.${what}`, () => ({ object: 'payment_method', ...methodView(method) }))
  return method
}

export function tellPayout(world: World, status: 'completed' | 'failed', payment: Payment): Payment {
  const { id: paymentId, merchantNetCents: amountCents, currency } = payment
  const id = world.makeId('pout')
  if (status === 'completed') tellPayment(world, 'payment.settled', payment)
  const { paymentSettledAt: paidOutAt } = shown(payment, 'paymentSettledAt')
  const about = status === 'failed' ? { paymentId } : { paidOutAt }
  const v3 = () => ({ object: 'payout', id, status, amountCents, currency, ...about })
  tell(world, `payout.${status}`, v3, () => settledEvent(payment, world, id))
  return payment
}

/** Far enough for a shuffle of all that happens in a day. */
const REORDER_MS = DAY_MS

/** Writes one delivery for each endpoint that wants the event. Endpoints of a generation get the same event. */
function tell(world: World, occurrence: Occurrence, v3: () => object, v2: () => object = v3): void {
  const { now, settings, draw } = world
  const told = new Map<Generation, { readonly eventId: string; readonly event: string }>()
  for (const { id: endpointId, generation, isActive, enabledEvents } of world.endpoints()) {
    const type = typeOf(occurrence, generation)
    const isWanted = isActive && (enabledEvents.length === 0 || enabledEvents.some((one) => one === type))
    if (type === null || !isWanted) continue
    const { eventId, event } = told.get(generation) ?? written(world, type, generation === 'v3' ? v3() : v2())
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

function written(world: World, type: string, data: object) {
  const id = world.makeId('evt')
  return { eventId: id, event: writeEvent({ id, type, createdAt: world.now, environment: 'sandbox', data }) }
}
