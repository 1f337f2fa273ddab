import { z } from 'zod'
import { CARD_METHODS, type Payment } from '../model.js'
import { outcomeOfToken } from '../paying.js'
import { cancelPlanChange, changePlan } from '../plan-change.js'
import { checkoutUrl } from '../sessions.js'
import { cancelSubscription } from '../subscription.js'
import { legacySubscriptionView } from '../views-v2.js'
import { paymentView, scheduledChangeView, subscriptionView, wholeSubscriptionView } from '../views-v3.js'
import { orNull, TEXT, WEB_URL } from './fields.js'
import { type Call, listing, named, operation } from './operation.js'

const CANCEL = z.object({ atPeriodEnd: z.boolean().default(false) })
const CHANGE_PLAN = z.object({
  productId: TEXT,
  effective: z.enum(['auto', 'now', 'period_end']).default('auto'),
  proration: z.enum(['delta', 'none']).default('delta'),
  useCustomerPaymentMethod: z.boolean().default(true),
  method: z.enum(CARD_METHODS).optional(),
  card: z.object({ tokenizedInstrument: TEXT }).optional(),
  successUrl: orNull(WEB_URL),
  cancelUrl: orNull(WEB_URL),
})
const CALL_OFF = z.object({ scheduledChangeId: TEXT.optional() })

const subscriptionNamed = named('subscription', 'SUBSCRIPTION_NOT_FOUND')

function planChanged(call: Call<typeof CHANGE_PLAN>): object {
  const { world, baseUrl } = call
  const { card, ...spec } = call.input
  const cardOutcome = card === undefined ? null : outcomeOfToken(card.tokenizedInstrument)
  const changed = changePlan(world, subscriptionNamed(call), { ...spec, cardOutcome })
  const { subscription, change, applied, payment } = changed
  // As it is now: a swap has marked it as applied.
  const current = subscription.changes.find(({ id }) => id === change.id)
  return {
    subscription: wholeSubscriptionView(subscription),
    scheduledChange: scheduledChangeView(current ?? change),
    applied,
    ...(payment && { payment: paymentView(payment, world), ...actionFor(payment, baseUrl) }),
  }
}

/** What the buyer has to do for an upgrade's charge; none of it if the charge is done. */
function actionFor({ id, status }: Payment, baseUrl: string): object {
  if (status !== 'PENDING_3DS') return {}
  const url = checkoutUrl(baseUrl, id)
  const handle = { providerPaymentId: `card_${id}`, clientSecret: `secret_${id}` }
  return { checkout: { ...handle, threeDsChallengeUrl: url, redirectUrl: url } }
}

function planChangeCanceled(call: Call<typeof CALL_OFF>): object {
  const { scheduledChangeId } = call.input
  const { subscription, change } = cancelPlanChange(call.world, subscriptionNamed(call), scheduledChangeId)
  return { subscription: wholeSubscriptionView(subscription), scheduledChange: scheduledChangeView(change) }
}

const cancel = (call: Call<typeof CANCEL>) =>
  cancelSubscription(call.world, subscriptionNamed(call), call.input.atPeriodEnd)
const cancelAtOnce = (call: Call) => cancelSubscription(call.world, subscriptionNamed(call), false)

export const SUBSCRIPTION_OPERATIONS = [
  listing('GET /v3/subscriptions', { kind: 'subscription', view: subscriptionView }),
  operation('GET /v3/subscriptions/:id', {}, subscriptionNamed, wholeSubscriptionView),
  operation('POST /v3/subscriptions/:id/cancel', { input: CANCEL }, cancel, wholeSubscriptionView),
  operation('POST /v3/subscriptions/:id/change-plan', { status: 202, input: CHANGE_PLAN }, planChanged),
  operation('POST /v3/subscriptions/:id/cancel-plan-change', { input: CALL_OFF }, planChangeCanceled),

  listing('GET /api/subscription', { kind: 'subscription', view: legacySubscriptionView }),
  operation('GET /api/subscription/:subscriptionId', {}, subscriptionNamed, legacySubscriptionView),
  operation('DELETE /api/subscription/:subscriptionId', {}, cancelAtOnce, legacySubscriptionView),
]
