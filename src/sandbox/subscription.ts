/* One subscription: its cycles, its dunning, its changes of plan by the eight rules of the v3 document, its end. */

import type { CancelChange, Cancellation, PlanChange } from '../provider/requests.js'
import { CARD_METHODS, CONTEXT } from '../provider/requests.js'
import { refuse } from './codes.js'
import { tellMethod, tellSubscription } from './events.js'
import type { Payment, Product, SavedMethod, ScheduledChange, Subscription } from './model.js'
import { DAY_MS, NEW_SUBSCRIPTION } from './model.js'
import type { PaymentSpec } from './payment.js'
import { assertNotDeclined, chargeCard, chooseMethod, createPayment, outcomeOf, withdraw } from './payment.js'
import { pendingChange } from './views-v3.js'
import type { World } from './world.js'

/** When a declined renewal is charged, in days after it fell due: 8 attempts over 30 days. */
const ATTEMPT_DAYS = [0, 1, 3, 6, 10, 15, 22, 30]
/** How long a lapsed crypto cycle may still be paid. */
const GRACE_MS = 7 * DAY_MS

export const isIncomplete = ({ status }: Subscription): boolean =>
  status === 'INCOMPLETE' || status === 'PENDING_3DS' || status === 'PENDING_REDIRECT'

export const isRunning = ({ status }: Subscription): boolean => status === 'ACTIVE' || status === 'PAST_DUE'

/** What its first payment takes, and how often it is paid; null: until somebody ends it. */
type SubscriptionSpec = Omit<PaymentSpec, 'purpose'> & Pick<Subscription, 'totalCycles'>

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
function applyChange(world: World, subscription: Subscription, change: ScheduledChange, payment?: Payment) {
  const { id, targetPriceId: productId, resetsAnchor } = change
  const { now } = world
  const currentCycleDueAt = now + cycleMs(world, productId)
  const anchor = resetsAnchor && { periodStart: now, currentCycleDueAt, dueAt: currentCycleDueAt }
  const swapped = world.update('subscription', subscription, (at) => {
    const changes = subscription.changes.map((one) => (one.id === id ? { ...one, appliedAt: at } : one))
    return { productId, changes, ...anchor }
  })
  return tellSubscription(world, 'subscription.updated', swapped, payment)
}

function withoutPendingChange(subscription: Subscription, at: number): readonly ScheduledChange[] {
  return subscription.changes.map((change) =>
    change.appliedAt === null && change.canceledAt === null ? { ...change, canceledAt: at } : change,
  )
}

const cycleMs = (world: World, productId: string): number =>
  (world.find('product', productId)?.frequencyInDays ?? 30) * DAY_MS

/** The card that paid is kept for the charges to come, unless one is kept already. */
function keepCard(world: World, { customerId, method }: Payment): void {
  const type = CARD_METHODS.find((one) => one === method)
  if (customerId === null || type === undefined || savedMethod(world, customerId) !== undefined) return
  attachMethod(world, customerId, type)
}

export function attachMethod(world: World, customerId: string, type: SavedMethod['type']): SavedMethod {
  const fields = { ...world.fresh('pm'), customerId, type, last4: '4242', revokedAt: null }
  return tellMethod(world, 'attached', world.put('method', fields))
}

/** The newest one that was not revoked. */
function savedMethod(world: World, customerId: string | null): SavedMethod | undefined {
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
  const isCrypto = subscription.rail === 'crypto'
  const before =
    isCrypto || product.priceCents === null
      ? world.list('payment', { subscriptionId: subscription.id }).find(({ purpose }) => purpose === 'cycle')
      : undefined
  const payment = createPayment(world, {
    product,
    customer: world.find('customer', subscription.customerId),
    subscriptionId: subscription.id,
    purpose: 'cycle',
    priceCents: product.priceCents ?? before?.priceCents ?? 0,
    ...(product.priceCents === null && before && { currency: before.currency }),
    context: CONTEXT.parse(subscription),
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
export function cancelSubscription(world: World, subscription: Subscription, how: Partial<Cancellation>) {
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
  if (!how.atPeriodEnd || status === 'PAST_DUE') {
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
  const ended = world.update('subscription', subscription, (at) => ({
    ...{ status, endedAt: at, dueAt: null, currentCycleDueAt: null, nextRenewalAttemptAt: null },
    changes: withoutPendingChange(subscription, at),
  }))
  const told = status === 'CANCELED' ? 'subscription.canceled' : 'subscription.expired'
  return tellSubscription(world, told, ended, last)
}

// Upgrades and downgrades

/** @throws {ServiceError} each code of the document's table but 401 */
export function changePlan(world: World, subscription: Subscription, spec: PlanChange) {
  const { current, target } = plansOf(world, subscription, spec.productId)
  const { now } = world
  const difference = (target.priceCents ?? 0) - (current.priceCents ?? 0)
  // Rule 1: the price alone decides. At the same price nothing is lost by swapping at once.
  const type = difference >= 0 ? 'UPGRADE' : 'DOWNGRADE'
  const isLater = type === 'DOWNGRADE' || spec.effective === 'period_end'
  // Rule 3: the rest of the cycle is charged, or another cadence in full.
  const resetsAnchor = !isLater && target.frequencyInDays !== current.frequencyInDays
  const cents = resetsAnchor ? (target.priceCents ?? 0) : Math.round(difference * restOf(subscription, now))
  const isFree = isLater || spec.proration === 'none' || cents === 0
  const payment = isFree ? undefined : chargeUpgrade(world, subscription, spec, target, cents)
  const change: ScheduledChange = {
    ...{
      id: world.makeId('ssc'),
      type,
      targetPriceId: target.id,
      paymentId: payment?.id ?? null,
      resetsAnchor,
    },
    scheduledFor: (isLater && subscription.currentCycleDueAt) || now,
    ...{ appliedAt: null, canceledAt: null },
  }
  const recorded = replaceChange(world, subscription, change)
  // Rules 4, 5 and 8: the plan swaps when the charge completes, which may wait for 3DS.
  const isSwapped = !isLater && (payment === undefined || payment.status === 'COMPLETED')
  const changed = isSwapped ? applyChange(world, recorded, change, payment) : recorded
  return { subscription: changed, change: changed.changes.at(-1), applied: isSwapped && isFree, payment }
}

/** Rule 2. */
function plansOf(world: World, subscription: Subscription, productId: string) {
  const isBeingPaid = Boolean(pendingChange(subscription)?.paymentId)
  if (subscription.status !== 'ACTIVE' || subscription.cancelAtPeriodEnd || isBeingPaid) {
    const why = isBeingPaid ? 'another change is being paid' : `it is ${subscription.status} or about to end`
    refuse('SUBSCRIPTION_NOT_MODIFIABLE', `The subscription can't be changed: ${why}.`)
  }
  const target = world.find('product', productId)
  const current = world.find('product', subscription.productId)
  if (target === undefined || current === undefined || target.status !== 'ACTIVE') {
    refuse('TARGET_PRODUCT_NOT_FOUND', `There is no active product ${productId}.`)
  }
  if (target.id === current.id) {
    const message = 'The subscription is on this plan. Call a queued change off with cancel-plan-change.'
    refuse('SAME_PLAN', message)
  }
  if (target.frequencyInDays === null) {
    refuse('TARGET_PRODUCT_NOT_RECURRING', `The product ${productId} is not recurring.`)
  }
  if (target.currency !== current.currency) {
    const message = `The plan is in ${current.currency}, the target in ${target.currency}.`
    refuse('PLAN_CHANGE_CURRENCY_MISMATCH', message)
  }
  return { current, target }
}

/** How much of the running cycle is left, from 0 to 1. */
function restOf({ periodStart: start, currentCycleDueAt: end }: Subscription, now: number): number {
  return start === null || end === null ? 1 : Math.min(1, Math.max(0, (end - now) / (end - start)))
}

/** Calls a pending change off, for a newer one or for none. */
function replaceChange(world: World, subscription: Subscription, ...newer: ScheduledChange[]): Subscription {
  return world.update('subscription', subscription, (at) => ({
    changes: [...withoutPendingChange(subscription, at), ...newer],
  }))
}

/** @throws {ServiceError} `UPGRADE_REQUIRES_CARD`, `PLAN_CHANGE_DECLINED`, with the charge staying on record */
function chargeUpgrade(
  world: World,
  subscription: Subscription,
  spec: PlanChange,
  product: Product,
  priceCents: number,
): Payment {
  const { customerId, externalRef, metadata } = subscription
  const { card, successUrl, cancelUrl } = spec
  const customer = world.find('customer', customerId)
  const saved = spec.useCustomerPaymentMethod ? savedMethod(world, customerId) : undefined
  const outcome = card ? outcomeOf(card.tokenizedInstrument) : saved && customer?.card
  if (outcome === undefined) {
    refuse('UPGRADE_REQUIRES_CARD', 'Send a fresh card in `card.tokenizedInstrument`: none is saved.')
  }
  const method = (card ? spec.method : saved?.type) ?? 'CARD'
  const context = { externalRef, metadata, successUrl, cancelUrl }
  const about = { product, customer, subscriptionId: subscription.id, context }
  const created = createPayment(world, { ...about, purpose: 'plan_change', priceCents })
  const payment = chargeCard(world, chooseMethod(world, created, method), outcome, 'present')
  return assertNotDeclined(payment, 'PLAN_CHANGE_DECLINED')
}

/** The charge of an upgrade that waited for its buyer has come to an end, one way or the other. */
export function upgradeCharged(world: World, subscription: Subscription, payment: Payment): void {
  const change = pendingChange(subscription)
  if (change === null || change.paymentId !== payment.id || !isRunning(subscription)) return
  if (payment.status === 'COMPLETED') applyChange(world, subscription, change, payment)
  else if (payment.status !== 'PENDING_3DS' && payment.status !== 'PENDING_REDIRECT') {
    replaceChange(world, subscription)
  }
}

/** Calls a queued change off, the named one or any. @throws {ServiceError} `NO_SCHEDULED_PLAN_CHANGE`, `PLAN_CHANGE_NOT_CANCELABLE` */
export function cancelPlanChange(world: World, subscription: Subscription, named: CancelChange) {
  const { scheduledChangeId: id } = named
  const pending = pendingChange(subscription)
  const change = id === undefined ? pending : subscription.changes.find((one) => one.id === id)
  if (change?.paymentId && change.canceledAt === null) {
    const message = 'The upgrade is charged or being charged: refund the charge and change the plan back.'
    refuse('PLAN_CHANGE_NOT_CANCELABLE', message)
  }
  if (!change || change.appliedAt !== null || change.canceledAt !== null) {
    refuse('NO_SCHEDULED_PLAN_CHANGE', 'No such plan change is queued: read the subscription again.')
  }
  if (subscription.status === 'PAST_DUE') {
    const message =
      'The renewal that makes the change is past due, and is charged at the price of the new plan.'
    refuse('PLAN_CHANGE_NOT_CANCELABLE', message)
  }
  const without = replaceChange(world, subscription)
  return { subscription: without, change: { ...change, canceledAt: without.updatedAt } }
}
