/* What is done to payments and subscriptions once they are there. */

import { z } from 'zod'
import { orNull } from '../../provider/event.js'
import type { CancelCheckout, Refund } from '../../provider/requests.js'
import {
  CANCEL_CHANGE,
  CANCEL_CHECKOUT,
  CANCELLATION,
  EMAIL,
  PLAN_CHANGE,
  REFUND,
} from '../../provider/requests.js'
import { checkoutUrl } from '../checkout.js'
import { refuse } from '../codes.js'
import type { Payment } from '../model.js'
import { followed, PAY, pay } from '../paying.js'
import { cancelCheckout, capture, chargeBack, refund, settle, voidPayment } from '../payment.js'
import { cancelPlanChange, cancelSubscription, changePlan, isIncomplete } from '../subscription.js'
import { LEGACY_STATUSES, legacyPaymentView, legacyStatus, legacySubscriptionView } from '../views-v2.js'
import { changeView, emailOf, paymentView, subscriptionView, wholeSubscriptionView } from '../views-v3.js'
import type { World } from '../world.js'
import { listing, numberedPage, PAGE_QUERY } from './lists.js'
import { actOn, type Call, named, operation } from './operation.js'

const paymentNamed = named('payment', 'PAYMENT_NOT_FOUND')
const onPayment = actOn(paymentNamed)

const PART = z.object({ amountInCents: orNull(z.int().min(1)) })
const SETTLE = z.object({ outcome: z.enum(['success', 'failed']).default('success') })
const captured = (world: World, payment: Payment) => followed(world, capture(world, payment))

const FILTERED_PAGE = PAGE_QUERY.extend({
  currency: z.string().max(20).toUpperCase().optional(),
  status: z.enum(LEGACY_STATUSES).optional(),
  customerEmail: EMAIL.toLowerCase().optional(),
})

function filterOf({ world, input }: Call<typeof FILTERED_PAGE>) {
  const { currency, status, customerEmail } = input
  if (!currency && !status && !customerEmail) return undefined
  return (payment: Payment): boolean =>
    (!currency || payment.deposit?.symbol === currency) &&
    (!status || legacyStatus(payment) === status) &&
    (!customerEmail || emailOf(payment, world)?.toLowerCase() === customerEmail)
}

function cancelPayment(world: World, payment: Payment, { reason }: CancelCheckout): Payment {
  const subscription = world.find('subscription', payment.subscriptionId)
  const isFirst = payment.purpose === 'cycle' && subscription !== undefined && isIncomplete(subscription)
  if (subscription !== undefined && !isFirst && payment.canceledAt === null) {
    refuse('PAYMENT_NOT_CANCELABLE', 'The payment belongs to a running subscription: cancel that.')
  }
  return followed(world, cancelCheckout(world, payment, reason))
}

function legacyRefund(world: World, before: Payment, { amountInCents, reason }: Refund): object {
  const payment = refund(world, before, { amountInCents })
  const { id: paymentId, refundedAmountCents } = payment
  const status = legacyStatus(payment)
  const refunded = refundedAmountCents - before.refundedAmountCents
  return { paymentId, status, amountInCents: refunded, refundedAmountCents, reason }
}

/** One line, in the least that a PDF reader takes. */
function receipt({ id, paymentReceivedAt, grossAmountCents, currency }: Payment): Buffer {
  if (paymentReceivedAt === null) {
    refuse('PAYMENT_NOT_FOUND', `The payment ${id} is not paid: it has no receipt.`)
  }
  const text = `Receipt for ${id}: ${(grossAmountCents / 100).toFixed(2)} ${currency}`
  const stream = `BT /F1 14 Tf 72 720 Td (${text}) Tj ET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources 6 0 R >>',
    `<< /Length ${stream.length} >> stream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    '<< /Font << /F1 5 0 R >> >>',
  ]
  let pdf = '%PDF-1.4\n'
  let places = '0000000000 65535 f \n'
  for (const [index, object] of objects.entries()) {
    places += `${String(pdf.length).padStart(10, '0')} 00000 n \n`
    pdf += `${index + 1} 0 obj ${object} endobj\n`
  }
  const trailer = `trailer << /Size 7 /Root 1 0 R >>\nstartxref\n${pdf.length}\n%%EOF\n`
  return Buffer.from(`${pdf}xref\n0 7\n${places}${trailer}`)
}

const withReason = { input: CANCEL_CHECKOUT }

export const PAYMENT_OPERATIONS = [
  listing('GET /v3/payments', { kind: 'payment', view: paymentView }),
  operation('GET /v3/payments/:id', {}, paymentNamed, paymentView),
  operation('GET /v3/payments/:id/receipt.pdf', {}, paymentNamed, receipt),

  operation('GET /api/payment', { input: FILTERED_PAGE }, (call) =>
    numberedPage(call.world, call.input, { kind: 'payment', view: legacyPaymentView, only: filterOf(call) }),
  ),
  operation('GET /api/payment/:paymentId', {}, paymentNamed, legacyPaymentView),
  onPayment('POST /api/payment/:paymentId/cancel', withReason, cancelPayment, legacyPaymentView),
  onPayment('POST /api/refund/:paymentId', { input: REFUND, idempotency: 'v2' }, legacyRefund),

  onPayment('POST /sandbox/payments/:id/pay', { input: PAY }, pay, paymentView),
  onPayment('POST /sandbox/payments/:id/refund', { input: PART }, refund, paymentView),
  onPayment('POST /sandbox/payments/:id/chargeback', {}, chargeBack, paymentView),
  onPayment('POST /sandbox/payments/:id/capture', {}, captured, paymentView),
  onPayment('POST /sandbox/payments/:id/void', {}, voidPayment, paymentView),
  onPayment('POST /sandbox/payments/:id/settle', { input: SETTLE }, settle, paymentView),
]

// What is done to a subscription

type Changed = Pick<ReturnType<typeof changePlan>, 'subscription' | 'change'>

const changeWithin = ({ subscription, change }: Changed): object => ({
  subscription: wholeSubscriptionView(subscription),
  scheduledChange: change && changeView(change),
})

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
const callOff = { input: CANCEL_CHANGE }

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
