import { CANCELED_PLAN_CHANGE, CANCELLATION, PLAN_CHANGE } from '../../provider/requests.js'
import { checkoutUrl } from '../checkout.js'
import type { Payment } from '../model.js'
import { cancelPlanChange, cancelSubscription, changePlan } from '../subscription.js'
import { legacySubscriptionView } from '../views-v2.js'
import { changeView, paymentView, subscriptionView, wholeSubscriptionView } from '../views-v3.js'
import { actOn, type Call, listing, named, operation } from './operation.js'

function changeWithin({
  subscription,
  change,
}: Pick<ReturnType<typeof changePlan>, 'subscription' | 'change'>) {
  return {
    subscription: wholeSubscriptionView(subscription),
    scheduledChange: change && changeView(change),
  }
}

function planChanged(call: Call<typeof PLAN_CHANGE>): object {
  const { world, baseUrl, input } = call
  const { applied, payment, ...changed } = changePlan(world, subscriptionNamed(call), input)
  const charge = payment && { payment: paymentView(payment, world), ...actionFor(payment, baseUrl()) }
  return { ...changeWithin(changed), applied, ...charge }
}

/** What the buyer has to do for an upgrade's charge; none of it if the charge is done. */
function actionFor({ id, status }: Payment, baseUrl: string): object {
  if (status !== 'PENDING_3DS') return {}
  const url = checkoutUrl(baseUrl, id)
  const handle = { providerPaymentId: `card_${id}`, clientSecret: `secret_${id}` }
  return { checkout: { ...handle, threeDsChallengeUrl: url, redirectUrl: url } }
}

const subscriptionNamed = named('subscription', 'SUBSCRIPTION_NOT_FOUND')
const onSubscription = actOn(subscriptionNamed)
const cancel = { input: CANCELLATION }
const callOff = { input: CANCELED_PLAN_CHANGE }

export const SUBSCRIPTION_OPERATIONS = [
  listing('GET /v3/subscriptions', { kind: 'subscription', view: subscriptionView }),
  operation('GET /v3/subscriptions/:id', {}, subscriptionNamed, wholeSubscriptionView),
  onSubscription('POST /v3/subscriptions/:id/cancel', cancel, cancelSubscription, wholeSubscriptionView),
  operation('POST /v3/subscriptions/:id/change-plan', { status: 202, input: PLAN_CHANGE }, planChanged),
  onSubscription('POST /v3/subscriptions/:id/cancel-plan-change', callOff, cancelPlanChange, changeWithin),

  listing('GET /api/subscription', { kind: 'subscription', view: legacySubscriptionView }),
  operation('GET /api/subscription/:subscriptionId', {}, subscriptionNamed, legacySubscriptionView),
  onSubscription('DELETE /api/subscription/:subscriptionId', {}, cancelSubscription, legacySubscriptionView),
]
