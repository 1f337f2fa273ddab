import type { Customer, Endpoint, Payment, SavedMethod, Subscription } from './model.js'
import { DAY_MS, type Delivery, type DeliveryFaults, type Generation } from './model.js'
import { legacyPaymentData, legacySubscriptionData, settledData } from './views-v2.js'
import {
  API_VERSION,
  customerView,
  iso,
  isoOrNull,
  METHOD_FIELDS,
  objectData,
  type Parties,
  paymentData,
  shown,
  subscriptionData,
} from './views-v3.js'
import type { World } from './world.js'

/** The wire names of what happens to a payment, by generation; null: that generation does not tell it. */
const PAYMENT_TYPES = {
  'checkout.initiated': [null, 'CHECKOUT_INITIATED'],
  'checkout.succeeded': ['checkout.succeeded', null],
  'checkout.failed': ['payment.failed', 'CHECKOUT_FAILED'],
  'checkout.canceled': [null, 'CHECKOUT_CANCELED'],
  'payment.authorized': ['payment.authorized', 'CHECKOUT_SUCCESS'],
  // A renewal is charged without its buyer, who authorizes no checkout.
  'renewal.authorized': ['payment.authorized', null],
  'payment.succeeded': ['payment.succeeded', 'PAYMENT_SUCCESS'],
  'payment.completed': ['payment.completed', null],
  'payment.failed': ['payment.failed', 'PAYMENT_FAILED'],
  'payment.canceled': ['payment.canceled', 'CHECKOUT_CANCELED'],
  'payment.refunded': ['payment.refunded', 'PAYMENT_REFUNDED'],
  'payment.partially_refunded': ['payment.partially_refunded', 'PARTIAL_REFUNDED'],
  'payment.chargeback': ['payment.chargeback', 'PAYMENT_CHARGEBACK'],
  'payment.settled': ['payment.settled', null],
} as const satisfies Record<string, readonly [string | null, string | null]>

const SUBSCRIPTION_TYPES = {
  'subscription.created': ['subscription.created', 'SUBSCRIPTION_CREATED'],
  'subscription.renewed': ['subscription.renewed', 'SUBSCRIPTION_RENEWED'],
  'subscription.updated': ['subscription.updated', null],
  'subscription.past_due': ['subscription.past_due', 'SUBSCRIPTION_PAST_DUE'],
  // The legacy vocabulary has no cancellation.
  'subscription.canceled': ['subscription.canceled', 'SUBSCRIPTION_EXPIRED'],
  'subscription.expired': ['subscription.expired', 'SUBSCRIPTION_EXPIRED'],
} as const satisfies Record<string, readonly [string | null, string | null]>

export type PaymentOccurrence = keyof typeof PAYMENT_TYPES
export type SubscriptionOccurrence = keyof typeof SUBSCRIPTION_TYPES

/** Every type that an endpoint may ask for. */
export const EVENT_TYPES: Readonly<Record<Generation, readonly string[]>> = {
  v3: [
    ...new Set(
      [...Object.values(PAYMENT_TYPES), ...Object.values(SUBSCRIPTION_TYPES)].flatMap(([type]) => type ?? []),
    ),
    ...['customer.created', 'customer.updated', 'customer.deleted'],
    ...['payment_method.attached', 'payment_method.detached', 'payout.completed', 'payout.failed'],
  ],
  v2: [
    ...new Set(
      [...Object.values(PAYMENT_TYPES), ...Object.values(SUBSCRIPTION_TYPES)].flatMap(
        ([, type]) => type ?? [],
      ),
    ),
    'PAYMENT_SETTLED',
  ],
}

/** One event in one generation, before it has an id. */
interface Told {
  readonly type: string | null
  readonly data: () => object
}

export function tellPayment(world: World, occurrence: PaymentOccurrence, payment: Payment): void {
  const [v3, v2] = PAYMENT_TYPES[occurrence]
  const parties = (): Parties => partiesOf(world, payment)
  const session = payment.sessionId
  tell(world, {
    v3: {
      type: v3,
      data: () =>
        occurrence === 'checkout.succeeded'
          ? {
              object: 'checkout_session',
              id: session,
              status: 'completed',
              payment: paymentData(payment, parties()),
            }
          : paymentData(payment, parties()),
    },
    v2: { type: v2, data: () => legacyPaymentData(payment, parties()) },
  })
}

/** @param payment the newest payment of the subscription, which the legacy generation shows */
export function tellSubscription(
  world: World,
  occurrence: SubscriptionOccurrence,
  subscription: Subscription,
  payment: Payment | undefined,
): void {
  const [v3, v2] = SUBSCRIPTION_TYPES[occurrence]
  const parties = (): Parties => partiesOf(world, subscription)
  tell(world, {
    v3: { type: v3, data: () => subscriptionData(subscription, parties()) },
    v2: { type: v2, data: () => legacySubscriptionData(subscription, parties(), payment) },
  })
}

export function tellCustomer(
  world: World,
  what: 'created' | 'updated' | 'deleted',
  customer: Customer,
): void {
  tellV3(world, `customer.${what}`, () => objectData('customer', customerView(customer)))
}

export function tellMethod(world: World, what: 'attached' | 'detached', method: SavedMethod): void {
  tellV3(world, `payment_method.${what}`, () => objectData('payment_method', shown(method, METHOD_FIELDS)))
}

/** One payout of one payment: v3 tells of both, the legacy generation of both in one event. */
export function tellSettled(world: World, payment: Payment): void {
  const payoutId = world.makeId('pout')
  const { merchantNetCents: amountCents, currency } = payment
  tellPayment(world, 'payment.settled', payment)
  tell(world, {
    v3: {
      type: 'payout.completed',
      data: () => {
        const paidOutAt = isoOrNull(payment.paymentSettledAt)
        return objectData('payout', { id: payoutId, status: 'completed', amountCents, currency, paidOutAt })
      },
    },
    v2: {
      type: 'PAYMENT_SETTLED',
      data: () => settledData(payment, partiesOf(world, payment).customer, payoutId),
    },
  })
}

export function tellFailedPayout(
  world: World,
  { id, merchantNetCents: amountCents, currency }: Payment,
): void {
  const payout = { id: world.makeId('pout'), status: 'failed', amountCents, currency, paymentId: id }
  tellV3(world, 'payout.failed', () => objectData('payout', payout))
}

function partiesOf(
  world: World,
  about: { readonly customerId: string | null; readonly productId: string },
): Parties {
  return {
    customer: world.find('customer', about.customerId),
    product: world.find('product', about.productId),
  }
}

function tellV3(world: World, type: string, data: () => object): void {
  tell(world, { v3: { type, data }, v2: { type: null, data } })
}

/** Writes one delivery for each endpoint that wants the event. Endpoints of a generation get the same event. */
function tell(world: World, told: Readonly<Record<Generation, Told>>): void {
  const made = new Map<Generation, { readonly id: string; readonly body: string }>()
  for (const endpoint of world.list('endpoint')) {
    const { type, data } = told[endpoint.generation]
    if (type === null || !wants(endpoint, type)) continue
    let event = made.get(endpoint.generation)
    if (event === undefined) {
      const id = world.makeId('evt')
      const createdAt = iso(world.now)
      const version = endpoint.generation === 'v3' ? { api_version: API_VERSION, livemode: false } : {}
      event = { id, body: JSON.stringify({ id, type, createdAt, ...version, data: data() }) }
      made.set(endpoint.generation, event)
    }
    deliver(world, endpoint, type, event)
  }
}

function wants({ isActive, enabledEvents }: Endpoint, type: string): boolean {
  return isActive && (enabledEvents.length === 0 || enabledEvents.includes(type))
}

/** Far enough for a shuffle of all that happens in a day. */
const REORDER_MS = DAY_MS

function deliver(
  world: World,
  { id: endpointId }: Endpoint,
  type: string,
  { id: eventId, body }: { readonly id: string; readonly body: string },
): void {
  const id = world.makeId('del')
  const faults = faultsFor(world, endpointId)
  const happens = (fault: string, chance = 0): boolean => chance > 0 && world.draw(`${fault} ${id}`) < chance
  const isDropped = happens('drop', faults?.drop)
  const dueAt = world.now + (faults?.delayMs ?? 0)
  const delivery: Delivery = {
    ...{ id, endpointId, eventId, type, body, dueAt },
    createdAt: world.now,
    status: isDropped ? 'dropped' : 'pending',
    failures: 0,
    isDoubled: happens('duplicate', faults?.duplicate),
    isDamaged: happens('damage', faults?.damage),
    attempts: [],
  }
  world.send(delivery, dueAt + (faults?.reorder ? world.draw(`reorder ${id}`) * REORDER_MS : 0))
}

function faultsFor(world: World, endpointId: string): DeliveryFaults | undefined {
  const { faults } = world.settings
  return (
    faults.find(({ endpoint }) => endpoint === endpointId) ?? faults.find(({ endpoint }) => endpoint === null)
  )
}
