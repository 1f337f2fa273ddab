/* One subscription: its cycles, its dunning, its end. Plan changes are in `plan-change.ts`. */

import { refuse } from './codes.js'
import { tellMethod, tellSubscription } from './events.js'
import { DAY_MS } from './fields.js'
import type { Payment, Product, SavedMethod, ScheduledChange, Subscription } from './model.js'
import { CARD_METHODS, NEW_SUBSCRIPTION } from './model.js'
import { chargeCard, chooseMethod, createPayment, type PaymentSpec, withdraw } from './payment.js'
import { pendingChange } from './views-v3.js'
import type { World } from './world.js'

/** When a declined renewal is charged, in days after it fell due: 8 attempts over 30 days. */
const ATTEMPT_DAYS = [0, 1, 3, 6, 10, 15, 22, 30]
/** How long a lapsed crypto cycle may still be paid. */
const GRACE_MS = 7 * DAY_MS

/** Whether the first cycle is still to be paid. */
export function isIncomplete({ status }: Subscription): boolean {
  return status === 'INCOMPLETE' || status === 'PENDING_3DS' || status === 'PENDING_REDIRECT'
}

export function isRunning({ status }: Subscription): boolean {
  return status === 'ACTIVE' || status === 'PAST_DUE'
}

/** What its first payment takes, and how often it is paid; null: until somebody ends it. */
export interface SubscriptionSpec
  extends Omit<PaymentSpec, 'purpose' | 'subscriptionId' | 'capture'>,
    Pick<Subscription, 'totalCycles'> {}

/** A subscription that waits for its first payment. */
export function createSubscription(world: World, { totalCycles, ...checkout }: SubscriptionSpec) {
  const subscription = world.put('subscription', {
    ...world.fresh('sub'),
    ...NEW_SUBSCRIPTION,
    ...checkout.context,
    customerId: checkout.customer?.id ?? null,
    productId: checkout.product.id,
    totalCycles,
  })
  const of = { purpose: 'cycle', subscriptionId: subscription.id } as const
  return { subscription, payment: createPayment(world, { ...checkout, ...of }) }
}

/** What follows for a subscription from where the payment of its cycle stands. */
export function followCycle(world: World, subscription: Subscription, payment: Payment): void {
  if (payment.status === 'COMPLETED') return void confirmCycle(world, subscription, payment)
  if (!isIncomplete(subscription)) return
  // A first payment shows in the status of its subscription, which otherwise tells nothing of a checkout.
  const waits = payment.status === 'PENDING_3DS' || payment.status === 'PENDING_REDIRECT'
  const isGone = payment.status === 'EXPIRED' || payment.status === 'CANCELED'
  const status = waits ? payment.status : isGone ? 'EXPIRED' : 'INCOMPLETE'
  if (status === subscription.status) return
  world.update('subscription', subscription, { status, endedAt: isGone ? world.now : null })
}

/** A cycle is paid: the first one, or the next. */
function confirmCycle(world: World, subscription: Subscription, payment: Payment): void {
  const isFirst = subscription.currentCycle === 0
  const change = dueChange(subscription)
  const isChanged = !isFirst && change?.targetPriceId === payment.productId
  const swapped = isChanged ? applyChange(world, subscription, change, payment) : subscription
  const isCard = payment.deposit === null
  if (isCard && subscription.rail !== 'card') keepCard(world, payment)
  const start = subscription.currentCycleDueAt ?? world.now
  const length = cycleMs(world, payment.productId)
  // A short cycle that was paid late begins with its payment; otherwise the anchor stays where it was.
  const begin = isFirst || start + length <= world.now ? world.now : start
  const active = world.update('subscription', swapped, {
    status: 'ACTIVE',
    rail: isCard ? 'card' : 'crypto',
    customerId: payment.customerId,
    currentCycle: subscription.currentCycle + 1,
    periodStart: begin,
    currentCycleDueAt: begin + length,
    dueAt: begin + length,
    renewalAttempt: 0,
    nextRenewalAttemptAt: null,
    lastDeclineCategory: null,
    renewalPaymentId: null,
  })
  tellSubscription(world, isFirst ? 'subscription.created' : 'subscription.renewed', active, payment)
}

/** The change that the next renewal applies: not an upgrade whose charge is under way. */
function dueChange(subscription: Subscription): ScheduledChange | null {
  const change = pendingChange(subscription)
  return change?.paymentId === null ? change : null
}

/** Swaps the plan, with a cycle that starts now where the change says so, and tells of it. */
export function applyChange(
  world: World,
  subscription: Subscription,
  { id, targetPriceId: productId, resetsAnchor }: ScheduledChange,
  payment: Payment | undefined,
): Subscription {
  const { now } = world
  const currentCycleDueAt = now + cycleMs(world, productId)
  const at = world.tick()
  const changes = subscription.changes.map((one) => (one.id === id ? { ...one, appliedAt: at } : one))
  const anchor = resetsAnchor && { periodStart: now, currentCycleDueAt, dueAt: currentCycleDueAt }
  const swapped = world.update('subscription', subscription, { productId, changes, ...anchor }, at)
  tellSubscription(world, 'subscription.updated', swapped, payment)
  return swapped
}

/** Calls every pending change off. */
export function withoutPendingChange(subscription: Subscription, at: number): readonly ScheduledChange[] {
  return subscription.changes.map((change) =>
    change.appliedAt === null && change.canceledAt === null ? { ...change, canceledAt: at } : change,
  )
}

function cycleMs(world: World, productId: string): number {
  return (world.find('product', productId)?.frequencyInDays ?? 30) * DAY_MS
}

/** The card that paid is kept for the charges to come, unless one is kept already. */
function keepCard(world: World, { customerId, method }: Payment): void {
  const type = CARD_METHODS.find((one) => one === method)
  if (customerId === null || type === undefined || savedMethod(world, customerId) !== undefined) return
  attachMethod(world, customerId, type)
}

export function attachMethod(world: World, customerId: string, type: SavedMethod['type']): SavedMethod {
  const fields = { ...world.fresh('pm'), customerId, type, last4: '4242', revokedAt: null }
  const method = world.put('method', fields)
  tellMethod(world, 'attached', method)
  return method
}

/** The newest one that was not revoked. */
export function savedMethod(world: World, customerId: string | null): SavedMethod | undefined {
  if (customerId === null) return undefined
  return world.list('method', { customerId }).find(({ revokedAt }) => revokedAt === null)
}

/** The time has come for what is next: the period ends, a declined renewal is charged again, or a grace is over. */
export function subscriptionDue(world: World, subscription: Subscription): void {
  if (subscription.status === 'ACTIVE') return void periodEnds(world, subscription)
  const payment = world.find('payment', subscription.renewalPaymentId)
  if (payment && subscription.rail === 'card') {
    attemptRenewal(world, subscription, payment, subscription.renewalAttempt + 1)
  } else if (payment && isArriving(payment)) {
    // It has come in time.
    world.put('subscription', { ...subscription, dueAt: world.now + DAY_MS })
  } else {
    end(world, subscription, 'EXPIRED')
  }
}

/** Whether a deposit is on its way, and will be there whatever happens to what it pays. */
const isArriving = ({ status }: Payment): boolean => status === 'RECEIVED' || status === 'BRIDGING'

/** The next cycle is charged, or the subscription ends. */
function periodEnds(world: World, subscription: Subscription): void {
  const { cancelAtPeriodEnd, totalCycles, currentCycle } = subscription
  if (cancelAtPeriodEnd) return void end(world, subscription, 'CANCELED')
  const isLast = totalCycles !== null && currentCycle >= totalCycles
  const productId = dueChange(subscription)?.targetPriceId ?? subscription.productId
  const product = world.find('product', productId)
  if (isLast || product === undefined) return void end(world, subscription, 'EXPIRED')
  const renewal = renewalPayment(world, subscription, product)
  if (subscription.rail === 'card') return void attemptRenewal(world, subscription, renewal, 1)
  const late = { status: 'PAST_DUE', renewalPaymentId: renewal.id, dueAt: world.now + GRACE_MS } as const
  const due = world.update('subscription', subscription, late)
  tellSubscription(world, 'subscription.past_due', due, renewal)
}

/** At today's price and VAT. */
function renewalPayment(world: World, subscription: Subscription, product: Product): Payment {
  const { id: subscriptionId, externalRef, metadata, successUrl, cancelUrl } = subscription
  const isCrypto = subscription.rail === 'crypto'
  const before =
    isCrypto || product.priceCents === null
      ? world.list('payment', { subscriptionId }).find(({ purpose }) => purpose === 'cycle')
      : undefined
  const payment = createPayment(world, {
    product,
    customer: world.find('customer', subscription.customerId),
    subscriptionId,
    purpose: 'cycle',
    priceCents: product.priceCents ?? before?.priceCents ?? 0,
    ...(product.priceCents === null && before && { currency: before.currency }),
    context: { externalRef, metadata, successUrl, cancelUrl },
    // A charge off-session is retried by its own schedule.
    expiresAt: isCrypto ? world.now + GRACE_MS : null,
  })
  if (!isCrypto || !product.paymentMethods.includes('CRYPTO')) return payment
  const { chainId, symbol, mode } = before?.deposit ?? {}
  return chooseMethod(world, payment, 'CRYPTO', { chainId, assetId: symbol, mode })
}

/** Charges the saved card for the cycle that is due. @param attempt from 1 */
function attemptRenewal(world: World, subscription: Subscription, payment: Payment, attempt: number): void {
  const saved = savedMethod(world, subscription.customerId)
  const method = payment.method ?? saved?.type ?? 'CARD'
  // Without a saved card there is nothing to charge.
  const outcome = (saved && world.find('customer', saved.customerId)?.card) ?? 'hard_decline'
  const asked = world.put('payment', { ...payment, method, deposit: null })
  const charged = chargeCard(world, asked, outcome, 'absent')
  if (charged.status === 'COMPLETED') return void confirmCycle(world, subscription, charged)
  const days = charged.declineCategory === 'HARD' ? undefined : ATTEMPT_DAYS[attempt]
  const start = subscription.currentCycleDueAt ?? world.now
  const next = days === undefined ? null : start + days * DAY_MS
  const failed = world.update('subscription', subscription, {
    status: 'PAST_DUE',
    renewalAttempt: attempt,
    nextRenewalAttemptAt: next,
    dueAt: next,
    lastDeclineCategory: charged.declineCategory,
    renewalPaymentId: charged.id,
  })
  if (next === null) return void end(world, failed, 'EXPIRED')
  if (attempt === 1) tellSubscription(world, 'subscription.past_due', failed, charged)
}

/** @throws {ServiceError} `SUBSCRIPTION_NOT_CANCELABLE` */
export function cancelSubscription(world: World, subscription: Subscription, atPeriodEnd: boolean) {
  const { status } = subscription
  if (!isRunning(subscription)) {
    refuse('SUBSCRIPTION_NOT_CANCELABLE', `The subscription is ${status}: it can't be canceled.`)
  }
  const renewal = world.find('payment', subscription.renewalPaymentId)
  if (renewal && isArriving(renewal)) {
    const message = 'The deposit of the next cycle is being confirmed: cancel once it has been.'
    refuse('SUBSCRIPTION_NOT_CANCELABLE', message)
  }
  // While a renewal is past due, the period's end is over.
  if (!atPeriodEnd || status === 'PAST_DUE') {
    return end(world, { ...subscription, cancelAtPeriodEnd: false }, 'CANCELED')
  }
  const changes = withoutPendingChange(subscription, world.now)
  return world.update('subscription', subscription, { cancelAtPeriodEnd: true, changes })
}

function end(world: World, subscription: Subscription, status: 'CANCELED' | 'EXPIRED'): Subscription {
  const payment = world.find('payment', subscription.renewalPaymentId)
  const isUnpaid = payment?.status === 'PENDING' || payment?.status === 'PARTIAL'
  // First, so that the end and what is told of it have the same instant.
  const last = isUnpaid ? withdraw(world, payment, 'subscription ended') : payment
  const at = world.tick()
  const changes = withoutPendingChange(subscription, at)
  const over = {
    status,
    endedAt: at,
    dueAt: null,
    currentCycleDueAt: null,
    nextRenewalAttemptAt: null,
    changes,
  }
  const ended = world.update('subscription', subscription, over, at)
  const told = status === 'CANCELED' ? 'subscription.canceled' : 'subscription.expired'
  tellSubscription(world, told, ended, last)
  return ended
}
