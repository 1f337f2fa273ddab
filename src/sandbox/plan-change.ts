/* Upgrades and downgrades, by the eight rules of the v3 document. */

import { z } from 'zod'
import { refuse } from './codes.js'
import { orNull, TEXT, WEB_URL } from './fields.js'
import type { Payment, Product, ScheduledChange, Subscription } from './model.js'
import { CARD_METHODS } from './model.js'
import { assertNotDeclined, chargeCard, chooseMethod, createPayment, outcomeOfToken } from './payment.js'
import { applyChange, isRunning, savedMethod, withoutPendingChange } from './subscription.js'
import { pendingChange } from './views-v3.js'
import type { World } from './world.js'

export const CHANGE_PLAN = z.object({
  productId: TEXT,
  effective: z.enum(['auto', 'now', 'period_end']).default('auto'),
  proration: z.enum(['delta', 'none']).default('delta'),
  useCustomerPaymentMethod: z.boolean().default(true),
  method: z.enum(CARD_METHODS).optional(),
  card: z.object({ tokenizedInstrument: TEXT }).optional(),
  successUrl: orNull(WEB_URL),
  cancelUrl: orNull(WEB_URL),
})
type PlanChangeSpec = z.output<typeof CHANGE_PLAN>

/** @throws {ServiceError} each code of the document's table but 401 */
export function changePlan(world: World, subscription: Subscription, spec: PlanChangeSpec) {
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
  const recorded = record(world, subscription, {
    type,
    targetPriceId: target.id,
    scheduledFor: (isLater && subscription.currentCycleDueAt) || now,
    paymentId: payment?.id ?? null,
    resetsAnchor,
  })
  const change = pendingChange(recorded)
  // Rules 4, 5 and 8: the plan swaps when the charge completes, which may wait for 3DS.
  const isSwapped = !isLater && (payment === undefined || payment.status === 'COMPLETED')
  const changed = isSwapped && change ? applyChange(world, recorded, change, payment) : recorded
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

/** A newer change takes the place of a pending one. */
function record(
  world: World,
  subscription: Subscription,
  fields: Omit<ScheduledChange, 'id' | 'appliedAt' | 'canceledAt'>,
): Subscription {
  const at = world.tick()
  const change = { id: world.makeId('ssc'), ...fields, appliedAt: null, canceledAt: null }
  const changes = [...withoutPendingChange(subscription, at), change]
  return world.update('subscription', subscription, { changes }, at)
}

/** @throws {ServiceError} `UPGRADE_REQUIRES_CARD`, `PLAN_CHANGE_DECLINED`, with the charge staying on record */
function chargeUpgrade(
  world: World,
  subscription: Subscription,
  spec: PlanChangeSpec,
  product: Product,
  priceCents: number,
): Payment {
  const { customerId, externalRef, metadata } = subscription
  const { card, successUrl, cancelUrl } = spec
  const customer = world.find('customer', customerId)
  const saved = spec.useCustomerPaymentMethod ? savedMethod(world, customerId) : undefined
  const outcome = card ? outcomeOfToken(card.tokenizedInstrument) : saved && customer?.card
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
    callOff(world, subscription)
  }
}

function callOff(world: World, subscription: Subscription): Subscription {
  const at = world.tick()
  return world.update('subscription', subscription, { changes: withoutPendingChange(subscription, at) }, at)
}

/** Calls a queued change off, the named one or any. @throws {ServiceError} `NO_SCHEDULED_PLAN_CHANGE`, `PLAN_CHANGE_NOT_CANCELABLE` */
export function cancelPlanChange(world: World, subscription: Subscription, id: string | undefined) {
  const pending = pendingChange(subscription)
  const named = id === undefined ? pending : subscription.changes.find((one) => one.id === id)
  if (named?.paymentId && named.canceledAt === null) {
    const message = 'The upgrade is charged or being charged: refund the charge and change the plan back.'
    refuse('PLAN_CHANGE_NOT_CANCELABLE', message)
  }
  if (!named || named.appliedAt !== null || named.canceledAt !== null) {
    refuse('NO_SCHEDULED_PLAN_CHANGE', 'No such plan change is queued: read the subscription again.')
  }
  if (subscription.status === 'PAST_DUE') {
    const message =
      'The renewal that makes the change is past due, and is charged at the price of the new plan.'
    refuse('PLAN_CHANGE_NOT_CANCELABLE', message)
  }
  const without = callOff(world, subscription)
  return { subscription: without, change: { ...named, canceledAt: without.updatedAt } }
}
