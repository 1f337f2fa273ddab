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
import { showPayment } from './payments.js'
import {
  assertOnSale,
  buyerOf,
  checkoutUrl,
  contextOf,
  deadlineIn,
  INSTRUMENT,
  PURCHASE,
  priceOf,
  startPayment,
} from './purchase.js'

/** How often it is paid; left out: until somebody ends it. */
const LEGACY_CREATE = PURCHASE.extend({ totalCycles: z.int().min(1).max(1000).nullable().default(null) })
const CREATE = LEGACY_CREATE.extend(INSTRUMENT.shape)

const CHANGE_PLAN = z.object({
  productId: TEXT,
  effective: z.enum(['auto', 'now', 'period_end']).default('auto'),
  proration: z.enum(['delta', 'none']).default('delta'),
  useCustomerPaymentMethod: z.boolean().default(true),
  method: z.enum(CARD_METHODS).optional(),
  card: z.object({ tokenizedInstrument: TEXT }).optional(),
  successUrl: WEB_URL.nullable().default(null),
  cancelUrl: WEB_URL.nullable().default(null),
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
  const customer = buyerOf(world, body, 'SUBSCRIPTION_CUSTOMER_NOT_FOUND')
  const { priceCents } = priceOf(product, body)
  const { totalCycles, customFields } = body
  const context = contextOf(body)
  return createSubscription(world, {
    product,
    customer,
    priceCents,
    totalCycles,
    context,
    customFields,
    expiresAt,
  })
}

/** @throws {ServiceError} `FIRST_PAYMENT_DECLINED`, with everything made staying on record */
function assertNotDeclined({ status, id: paymentId, declineCode, declineCategory }: Payment): void {
  if (status !== 'DECLINED' && status !== 'FAILED') return
  const data = { paymentId, declineCode, declineCategory }
  throw new ServiceError('FIRST_PAYMENT_DECLINED', 'The first payment was declined.', {
    data,
    keepsChanges: true,
  })
}

/** What the buyer has to do for an upgrade's charge; none of it if the charge is done. */
function actionFor({ id, status }: Payment, baseUrl: string): object {
  if (status !== 'PENDING_3DS') return {}
  const url = checkoutUrl(baseUrl, id)
  const handle = { providerPaymentId: `card_${id}`, clientSecret: `secret_${id}` }
  return { checkout: { ...handle, threeDsChallengeUrl: url, redirectUrl: url } }
}

export const SUBSCRIPTION_OPERATIONS: readonly Operation[] = [
  operation(
    'POST /v3/subscriptions',
    (world, { body, baseUrl }) => {
      const created = subscribe(world, body, deadlineIn(world, body.expiresAt))
      const payment = startPayment(world, created.payment, body)
      assertNotDeclined(payment)
      const subscription = show(named(world, created.subscription.id))
      return {
        ...subscription,
        payment: showPayment(world, payment),
        paymentUrl: checkoutUrl(baseUrl, payment.id),
      }
    },
    { status: 201, body: CREATE },
  ),
  operation(
    'GET /v3/subscriptions',
    (world, { query }) =>
      cursorPage(query, (span) => world.placed('subscription', {}, span), subscriptionView),
    { query: CURSOR_QUERY },
  ),
  operation('GET /v3/subscriptions/:id', (world, { params }) => show(named(world, params.id))),
  operation(
    'POST /v3/subscriptions/:id/cancel',
    (world, { params, body }) => show(cancelSubscription(world, named(world, params.id), body.atPeriodEnd)),
    { body: z.object({ atPeriodEnd: z.boolean().default(false) }) },
  ),
  operation(
    'POST /v3/subscriptions/:id/change-plan',
    (world, { params, body, baseUrl }) => {
      const { card, ...spec } = body
      const cardOutcome = card === undefined ? null : outcomeOfToken(card.tokenizedInstrument)
      const { subscription, change, applied, payment } = changePlan(world, named(world, params.id), {
        ...spec,
        cardOutcome,
      })
      // As it is now: a swap has marked it as applied.
      const current = subscription.changes.find(({ id }) => id === change.id)
      return {
        subscription: show(subscription),
        scheduledChange: scheduledChangeView(current ?? change),
        applied,
        ...(payment && { payment: showPayment(world, payment), ...actionFor(payment, baseUrl) }),
      }
    },
    { status: 202, body: CHANGE_PLAN },
  ),
  operation(
    'POST /v3/subscriptions/:id/cancel-plan-change',
    (world, { params, body }) => {
      const { subscription, change } = cancelPlanChange(
        world,
        named(world, params.id),
        body.scheduledChangeId,
      )
      return { subscription: show(subscription), scheduledChange: scheduledChangeView(change) }
    },
    { body: z.object({ scheduledChangeId: TEXT.optional() }) },
  ),

  operation(
    'POST /api/subscription/create',
    (world, { body, baseUrl }) => {
      const { payment, subscription } = subscribe(world, body, deadlineIn(world, body.expiresAt) ?? null)
      const { id, metadata, customFields } = payment
      const paymentUrl = checkoutUrl(baseUrl, id)
      return { paymentId: id, paymentUrl, metadata, customFields, subscriptionId: subscription.id }
    },
    { status: 201, body: LEGACY_CREATE },
  ),
  operation(
    'GET /api/subscription',
    (world, { query }) => recordPage(world, 'subscription', {}, query, (one) => showLegacy(world, one)),
    { query: PAGE_QUERY },
  ),
  operation('GET /api/subscription/:subscriptionId', (world, { params }) =>
    showLegacy(world, named(world, params.subscriptionId)),
  ),
  operation('DELETE /api/subscription/:subscriptionId', (world, { params }) =>
    showLegacy(world, cancelSubscription(world, named(world, params.subscriptionId), false)),
  ),
]
