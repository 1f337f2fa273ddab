/* Upgrades and downgrades, by the eight rules of the v3 document. */

import { ServiceError } from './codes.js'
import type {
  CARD_METHODS,
  Customer,
  Outcome,
  Payment,
  Product,
  ScheduledChange,
  Subscription,
} from './model.js'
import { chargeCard, chooseMethod, createPayment } from './payment.js'
import { proratedCents } from './pricing.js'
import { applyChange, cycleMs, isRunning, savedMethod, withoutPendingChange } from './subscription.js'
import { pendingChange } from './views-v3.js'
import type { World } from './world.js'

export interface PlanChangeSpec {
  readonly productId: string
  readonly effective: 'auto' | 'now' | 'period_end'
  readonly proration: 'delta' | 'none'
  readonly useCustomerPaymentMethod: boolean
  readonly method?: (typeof CARD_METHODS)[number] | undefined
  readonly cardOutcome: Outcome | null
  readonly successUrl: string | null
  readonly cancelUrl: string | null
}

export interface PlanChange {
  readonly subscription: Subscription
  readonly change: ScheduledChange
  readonly applied: boolean
  readonly payment?: Payment
}

/** @throws {ServiceError} each code of the document's table but 401 */
export function changePlan(world: World, subscription: Subscription, spec: PlanChangeSpec): PlanChange {
  const { current, target } = plansOf(world, subscription, spec)
  const difference = (target.priceCents ?? 0) - (current.priceCents ?? 0)
  // Rule 1: the price alone decides. At the same price nothing is lost by swapping at once.
  const isUpgrade = difference >= 0
  const isNow = isUpgrade && spec.effective !== 'period_end'
  if (!isNow) {
    const type = isUpgrade ? 'UPGRADE' : 'DOWNGRADE'
    const at = subscription.currentCycleDueAt ?? world.now
    const recorded = record(world, subscription, {
      type,
      target,
      scheduledFor: at,
      paymentId: null,
      resets: false,
    })
    return { ...recorded, applied: false }
  }
  const isSameCadence = target.frequencyInDays === current.frequencyInDays
  const cents = chargeCents(world, subscription, target, isSameCadence ? difference : null)
  const upgrade = { type: 'UPGRADE', target, scheduledFor: world.now, resets: !isSameCadence } as const
  if (spec.proration === 'none' || cents === 0) {
    const recorded = record(world, subscription, { ...upgrade, paymentId: null })
    return { ...recorded, subscription: swap(world, recorded.subscription, recorded.change), applied: true }
  }
  return chargeUpgrade(world, subscription, { ...upgrade, cents, spec })
}

/** Rule 2. */
function plansOf(world: World, subscription: Subscription, { productId }: PlanChangeSpec) {
  const change = pendingChange(subscription)
  if (subscription.status !== 'ACTIVE' || subscription.cancelAtPeriodEnd || change?.paymentId) {
    const why = change?.paymentId
      ? 'another change is being paid'
      : `it is ${subscription.status} or about to end`
    throw new ServiceError('SUBSCRIPTION_NOT_MODIFIABLE', `The subscription can't be changed: ${why}.`)
  }
  const target = world.find('product', productId)
  const current = world.find('product', subscription.productId)
  if (target === undefined || current === undefined || target.status !== 'ACTIVE') {
    throw new ServiceError('TARGET_PRODUCT_NOT_FOUND', `There is no active product ${productId}.`)
  }
  if (target.id === current.id) {
    throw new ServiceError(
      'SAME_PLAN',
      'The subscription is on this plan. Call a queued change off with cancel-plan-change.',
    )
  }
  if (target.frequencyInDays === null) {
    throw new ServiceError('TARGET_PRODUCT_NOT_RECURRING', `The product ${productId} is not recurring.`)
  }
  if (target.currency !== current.currency) {
    const message = `The plan is in ${current.currency}, the target in ${target.currency}.`
    throw new ServiceError('PLAN_CHANGE_CURRENCY_MISMATCH', message)
  }
  return { current, target }
}

/** Rule 3. @param difference null: another cadence, which is charged in full */
function chargeCents(
  world: World,
  subscription: Subscription,
  target: Product,
  difference: number | null,
): number {
  if (difference === null) return target.priceCents ?? 0
  const { currentCycleDueAt, periodStart } = subscription
  if (currentCycleDueAt === null || periodStart === null) return difference
  return proratedCents(difference, periodStart, currentCycleDueAt, world.now)
}

interface NewChange {
  readonly type: ScheduledChange['type']
  readonly target: Product
  readonly scheduledFor: number
  readonly paymentId: string | null
  readonly resets: boolean
}

/** A newer change takes the place of a pending one. */
function record(
  world: World,
  subscription: Subscription,
  { type, target, scheduledFor, paymentId, resets }: NewChange,
): { readonly subscription: Subscription; readonly change: ScheduledChange } {
  const at = world.tick()
  const change: ScheduledChange = {
    ...{ id: world.makeId('ssc'), type, fromProductId: subscription.productId, targetPriceId: target.id },
    ...{ scheduledFor, paymentId, resetsAnchor: resets, appliedAt: null, canceledAt: null },
  }
  const changes = [...withoutPendingChange(subscription, at), change]
  const recorded = world.put('subscription', { ...subscription, changes, updatedAt: at })
  return { subscription: recorded, change }
}

function swap(
  world: World,
  subscription: Subscription,
  change: ScheduledChange,
  payment?: Payment,
): Subscription {
  if (!change.resetsAnchor) return applyChange(world, subscription, change, payment)
  const currentCycleDueAt = world.now + cycleMs(world, change.targetPriceId)
  world.schedule('subscription.due', subscription.id, currentCycleDueAt)
  return applyChange(world, subscription, change, payment, { periodStart: world.now, currentCycleDueAt })
}

interface Upgrade extends Omit<NewChange, 'paymentId'> {
  readonly cents: number
  readonly spec: PlanChangeSpec
}

/** Rules 4, 5 and 8: the plan swaps when the charge completes, which may wait for 3DS. */
function chargeUpgrade(
  world: World,
  subscription: Subscription,
  { cents, spec, ...upgrade }: Upgrade,
): PlanChange {
  const customer = world.find('customer', subscription.customerId)
  const { method, outcome } = instrumentFor(world, customer, spec)
  const created = createPayment(world, {
    ...{ product: upgrade.target, customer, subscriptionId: subscription.id, purpose: 'plan_change' },
    priceCents: cents,
    context: {
      externalRef: subscription.externalRef,
      metadata: subscription.metadata,
      successUrl: spec.successUrl,
      cancelUrl: spec.cancelUrl,
    },
  })
  const charged = chargeCard(world, chooseMethod(world, created, method), outcome, 'present')
  if (charged.status === 'DECLINED' || charged.status === 'FAILED') {
    throw new ServiceError('PLAN_CHANGE_DECLINED', `The charge of ${cents} cents was declined.`, {
      data: {
        paymentId: charged.id,
        declineCode: charged.declineCode,
        declineCategory: charged.declineCategory,
      },
      keepsChanges: true,
    })
  }
  const recorded = record(world, subscription, { ...upgrade, paymentId: charged.id })
  const after =
    charged.status === 'COMPLETED' ? swap(world, recorded.subscription, recorded.change, charged) : null
  return { ...recorded, ...(after && { subscription: after }), applied: false, payment: charged }
}

/** A fresh card goes before the saved one. @throws {ServiceError} `UPGRADE_REQUIRES_CARD` */
function instrumentFor(world: World, customer: Customer | undefined, spec: PlanChangeSpec) {
  if (spec.cardOutcome !== null) return { method: spec.method ?? 'CARD', outcome: spec.cardOutcome } as const
  const saved = customer && spec.useCustomerPaymentMethod ? savedMethod(world, customer.id) : undefined
  if (saved !== undefined && customer !== undefined) return { method: saved.type, outcome: customer.card }
  throw new ServiceError(
    'UPGRADE_REQUIRES_CARD',
    'Send a fresh card in `card.tokenizedInstrument`: none is saved.',
  )
}

/** The charge of an upgrade that waited for its buyer has come to an end, one way or the other. */
export function upgradeCharged(world: World, subscription: Subscription, payment: Payment): void {
  const change = pendingChange(subscription)
  if (change === null || change.paymentId !== payment.id || !isRunning(subscription)) return
  if (payment.status === 'COMPLETED') return void swap(world, subscription, change, payment)
  if (payment.status === 'PENDING_3DS' || payment.status === 'PENDING_REDIRECT') return
  const at = world.tick()
  world.put('subscription', {
    ...subscription,
    changes: withoutPendingChange(subscription, at),
    updatedAt: at,
  })
}

/**
 * Calls a queued change off.
 * @param id left out: the one that is queued. @throws {ServiceError} `NO_SCHEDULED_PLAN_CHANGE`, `PLAN_CHANGE_NOT_CANCELABLE`
 */
export function cancelPlanChange(
  world: World,
  subscription: Subscription,
  id: string | undefined,
): PlanChange {
  const named =
    id === undefined ? pendingChange(subscription) : subscription.changes.find((one) => one.id === id)
  if (named?.paymentId && named.canceledAt === null) {
    const message = 'The upgrade is charged or being charged: refund the charge and change the plan back.'
    throw new ServiceError('PLAN_CHANGE_NOT_CANCELABLE', message)
  }
  if (!named || named.appliedAt !== null || named.canceledAt !== null) {
    throw new ServiceError(
      'NO_SCHEDULED_PLAN_CHANGE',
      'No such plan change is queued: read the subscription again.',
    )
  }
  if (subscription.status === 'PAST_DUE') {
    const message =
      'The renewal that makes the change is past due, and is charged at the price of the new plan.'
    throw new ServiceError('PLAN_CHANGE_NOT_CANCELABLE', message)
  }
  const at = world.tick()
  const changes = withoutPendingChange(subscription, at)
  const without = world.put('subscription', { ...subscription, changes, updatedAt: at })
  return { subscription: without, change: { ...named, canceledAt: at }, applied: false }
}
