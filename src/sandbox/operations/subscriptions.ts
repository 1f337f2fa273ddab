import { z } from 'zod'
import { checkoutUrl } from '../checkout.js'
import { TEXT } from '../fields.js'
import type { Payment } from '../model.js'
import { CHANGE_PLAN, cancelPlanChange, changePlan } from '../plan-change.js'
import { cancelSubscription } from '../subscription.js'
import { legacySubscriptionView } from '../views-v2.js'
import { changeView, paymentView, subscriptionView, wholeSubscriptionView } from '../views-v3.js'
import { type Call, listing, named, operation } from './operation.js'

const CANCEL = z.object({ atPeriodEnd: z.boolean().default(false) })
const CALL_OFF = z.object({ scheduledChangeId: TEXT.optional() })

const subscriptionNamed = named('subscription', 'SUBSCRIPTION_NOT_FOUND')

function planChanged(call: Call<typeof CHANGE_PLAN>): object {
  const { world, baseUrl, input } = call
  const { subscription, change, applied, payment } = changePlan(world, subscriptionNamed(call), input)
  return {
    subscription: wholeSubscriptionView(subscription),
    scheduledChange: change && changeView(change),
    applied,
    ...(payment && { payment: paymentView(payment, world), ...actionFor(payment, baseUrl()) }),
  }
}

/** What the buyer has to do for an upgrade's charge; none of it if the charge is done. */
function actionFor({ id, status }: Payment, baseUrl: string): object {
  if (status !== 'PENDING_3DS') return {}
  const url = checkoutUrl(baseUrl, id)
  const handle = { providerPaymentId: `card_${id}`, clientSecret: `secret_${id}` }
  return { checkout: { ...handle, threeDsChallengeUrl: url, redirectUrl: url } }
}

export const SUBSCRIPTION_OPERATIONS = [
  listing('GET /v3/subscriptions', { kind: 'subscription', view: subscriptionView }),
  operation('GET /v3/subscriptions/:id', {}, subscriptionNamed, wholeSubscriptionView),
  operation(
    'POST /v3/subscriptions/:id/cancel',
    { input: CANCEL },
    (call) => cancelSubscription(call.world, subscriptionNamed(call), call.input.atPeriodEnd),
    wholeSubscriptionView,
  ),
  operation('POST /v3/subscriptions/:id/change-plan', { status: 202, input: CHANGE_PLAN }, planChanged),
  operation('POST /v3/subscriptions/:id/cancel-plan-change', { input: CALL_OFF }, (call) => {
    const { scheduledChangeId } = call.input
    const { subscription, change } = cancelPlanChange(call.world, subscriptionNamed(call), scheduledChangeId)
    return { subscription: wholeSubscriptionView(subscription), scheduledChange: changeView(change) }
  }),

  listing('GET /api/subscription', { kind: 'subscription', view: legacySubscriptionView }),
  operation('GET /api/subscription/:subscriptionId', {}, subscriptionNamed, legacySubscriptionView),
  operation(
    'DELETE /api/subscription/:subscriptionId',
    {},
    (call) => cancelSubscription(call.world, subscriptionNamed(call), false),
    legacySubscriptionView,
  ),
]
