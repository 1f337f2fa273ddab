import { z } from 'zod'
import { ServiceError } from '../codes.js'
import { CARD_METHODS, type Payment, type Subscription } from '../model.js'
import { outcomeOfToken } from '../paying.js'
import { cancelPlanChange, changePlan } from '../plan-change.js'
import { cancelSubscription, createSubscription } from '../subscription.js'
import { legacySubscriptionView } from '../views-v2.js'
import { pendingChange, scheduledChangeView, subscriptionView } from '../views-v3.js'
import type { World } from '../world.js'
import {
  CURSOR_QUERY,
  cursorPage,
  found,
  type Operation,
  operation,
  PAGE_QUERY,
  recordPage,
  TEXT,
  WEB_URL,
} from './operation.js'
import { deadlineIn, showPayment, startPayment } from './payments.js'
import { assertOnSale, buyerOf, checkoutUrl, contextOf, INSTRUMENT, PURCHASE, priceOf } from './purchase.js'

const LEGACY_CREATE = PURCHASE.extend({
  /** How often it is paid; left out: until somebody ends it. */
  totalCycles: z.int().min(1).max(1000).nullish(),
})
const CREATE = LEGACY_CREATE.extend(INSTRUMENT.shape)

const CHANGE_PLAN = z.object({
  productId: TEXT,
  effective: z.enum(['auto', 'now', 'period_end']).default('auto'),
  proration: z.enum(['delta', 'none']).default('delta'),
  useCustomerPaymentMethod: z.boolean().default(true),
  method: z.enum(CARD_METHODS).optional(),
  card: z.object({ tokenizedInstrument: TEXT }).optional(),
  successUrl: WEB_URL.optional(),
  cancelUrl: WEB_URL.optional(),
})

const named = (world: World, id: string | undefined): Subscription =>
  found(world, 'subscription', id, 'SUBSCRIPTION_NOT_FOUND')

/** With the plan change that is queued. */
function show(subscription: Subscription): object {
  const change = pendingChange(subscription)
  return { ...subscriptionView(subscription), scheduledChange: change && scheduledChangeView(change) }
}

const showLegacy = (world: World, subscription: Subscription): object =>
  legacySubscriptionView(subscription, world.find('customer', subscription.customerId))

function subscribe(world: World, body: z.output<typeof LEGACY_CREATE>, expiresAt: number | null | undefined) {
  const product = found(world, 'product', body.productId, 'SUBSCRIPTION_PRODUCT_NOT_FOUND')
  assertOnSale(world, product)
  if (product.frequencyInDays === null) {
    throw new ServiceError('PRODUCT_NOT_RECURRING', `The product ${product.id} is not recurring.`)
  }
  return createSubscription(world, {
    product,
    customer: buyerOf(world, body, 'SUBSCRIPTION_CUSTOMER_NOT_FOUND'),
    priceCents: priceOf(product, body).priceCents,
    totalCycles: body.totalCycles ?? null,
    context: contextOf(body),
    customFields: body.customFields ?? null,
    expiresAt,
  })
}

/** @throws {ServiceError} `FIRST_PAYMENT_DECLINED`, with everything made staying on record */
function assertNotDeclined(payment: Payment): void {
  if (payment.status !== 'DECLINED' && payment.status !== 'FAILED') return
  throw new ServiceError('FIRST_PAYMENT_DECLINED', 'The first payment was declined.', {
    data: {
      paymentId: payment.id,
      declineCode: payment.declineCode,
      declineCategory: payment.declineCategory,
    },
    keepsChanges: true,
  })
}

/** What the buyer has to do for an upgrade's charge; none of it if the charge is done. */
function actionFor(payment: Payment, baseUrl: string) {
  if (payment.status !== 'PENDING_3DS' && payment.status !== 'PENDING_REDIRECT') return undefined
  const url = checkoutUrl(baseUrl, payment.id)
  return {
    providerPaymentId: `card_${payment.id}`,
    threeDsChallengeUrl: url,
    redirectUrl: url,
    clientSecret: `secret_${payment.id}`,
  }
}

export const SUBSCRIPTION_OPERATIONS: readonly Operation[] = [
  operation(
    'POST /v3/subscriptions',
    { about: 'create subscription', status: 201, body: CREATE },
    (world, { body, baseUrl }) => {
      const created = subscribe(world, body, deadlineIn(world, body.expiresAt))
      const payment = startPayment(world, created.payment, body)
      assertNotDeclined(payment)
      return {
        ...show(named(world, created.subscription.id)),
        payment: showPayment(world, payment),
        paymentUrl: checkoutUrl(baseUrl, payment.id),
      }
    },
  ),
  operation(
    'GET /v3/subscriptions',
    { about: 'list subscriptions', query: CURSOR_QUERY },
    (world, { query }) =>
      cursorPage(query, (span) => world.placed('subscription', {}, span), subscriptionView),
  ),
  operation('GET /v3/subscriptions/:id', { about: 'get subscription' }, (world, { params }) =>
    show(named(world, params.id)),
  ),
  operation(
    'POST /v3/subscriptions/:id/cancel',
    { about: 'cancel subscription', body: z.object({ atPeriodEnd: z.boolean().default(false) }) },
    (world, { params, body }) => show(cancelSubscription(world, named(world, params.id), body.atPeriodEnd)),
  ),
  operation(
    'POST /v3/subscriptions/:id/change-plan',
    { about: 'upgrade or downgrade', status: 202, body: CHANGE_PLAN },
    (world, { params, body, baseUrl }) => {
      const { card, ...spec } = body
      const cardOutcome = card === undefined ? null : outcomeOfToken(card.tokenizedInstrument)
      const done = changePlan(world, named(world, params.id), { ...spec, cardOutcome })
      const checkout = done.payment && actionFor(done.payment, baseUrl)
      return {
        subscription: show(done.subscription),
        scheduledChange: scheduledChangeView(
          done.subscription.changes.find(({ id }) => id === done.change.id) ?? done.change,
        ),
        applied: done.applied,
        ...(done.payment && { payment: showPayment(world, done.payment) }),
        ...(checkout && { checkout }),
      }
    },
  ),
  operation(
    'POST /v3/subscriptions/:id/cancel-plan-change',
    { about: 'call off a pending plan change', body: z.object({ scheduledChangeId: TEXT.optional() }) },
    (world, { params, body }) => {
      const done = cancelPlanChange(world, named(world, params.id), body.scheduledChangeId ?? null)
      return { subscription: show(done.subscription), scheduledChange: scheduledChangeView(done.change) }
    },
  ),

  operation(
    'POST /api/subscription/create',
    { about: 'create subscription payment', status: 201, body: LEGACY_CREATE },
    (world, { body, baseUrl }) => {
      const { payment, subscription } = subscribe(world, body, deadlineIn(world, body.expiresAt) ?? null)
      const { id, metadata, customFields } = payment
      const paymentUrl = checkoutUrl(baseUrl, id)
      return { paymentId: id, paymentUrl, metadata, customFields, subscriptionId: subscription.id }
    },
  ),
  operation('GET /api/subscription', { about: 'list subscriptions', query: PAGE_QUERY }, (world, { query }) =>
    recordPage(world, 'subscription', {}, query, (subscription) => showLegacy(world, subscription)),
  ),
  operation('GET /api/subscription/:subscriptionId', { about: 'get subscription' }, (world, { params }) =>
    showLegacy(world, named(world, params.subscriptionId)),
  ),
  operation(
    'DELETE /api/subscription/:subscriptionId',
    { about: 'cancel subscription' },
    (world, { params }) =>
      showLegacy(world, cancelSubscription(world, named(world, params.subscriptionId), false)),
  ),
]
