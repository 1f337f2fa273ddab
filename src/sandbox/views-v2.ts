/* The same records as v2 shows them. */

import type { LegacyPayment } from '../provider/wire-event.js'
import { legacyPaymentData, legacySettledData, legacySubscriptionData } from '../provider/wire-event.js'
import type { Customer, Payment, PaymentStatus, Subscription } from './model.js'
import { inUsCents } from './pricing.js'
import { accessEnd, assetView, customerOf, emailOf, isoOrNull, shown } from './views-v3.js'
import type { World } from './world.js'

/** The document gives the names, and the sandbox what they stand for. */
const LEGACY_NAMES = {
  PENDING: 'PENDING',
  PENDING_3DS: 'PENDING',
  PENDING_REDIRECT: 'PENDING',
  PARTIAL: 'PENDING',
  RECEIVED: 'PROCESSING',
  BRIDGING: 'PROCESSING',
  AUTHORIZED: 'CHECKOUT_SUCCESS',
  COMPLETED: 'PAYMENT_SUCCESS',
  FAILED: 'FAILED',
  DECLINED: 'FAILED',
  EXPIRED: 'TX_EXPIRED',
  REFUNDED: 'REFUNDED',
  PARTIALLY_REFUNDED: 'PARTIALLY_REFUNDED',
  CANCELED: 'CANCELED',
} as const satisfies Readonly<Record<PaymentStatus, string>>
/** Where the status alone does not tell. */
const OTHER_NAMES = ['INITIATED', 'CHARGEBACK', 'TX_SUCCESS', 'CHECKOUT_FAILED'] as const

export const LEGACY_STATUSES = [...OTHER_NAMES, ...Object.values(LEGACY_NAMES)]

export function legacyStatus(payment: Payment): (typeof LEGACY_STATUSES)[number] {
  const { status, chargebackAt, method, deposit, statusTimeline } = payment
  const name = LEGACY_NAMES[status]
  if (chargebackAt !== null) return 'CHARGEBACK'
  if (status === 'PENDING' && method === null) return 'INITIATED'
  if (status === 'COMPLETED' && deposit !== null) return 'TX_SUCCESS'
  const wasAuthorized = statusTimeline.some((entry) => entry.status === 'AUTHORIZED')
  return name === 'FAILED' && deposit === null && !wasAuthorized ? 'CHECKOUT_FAILED' : name
}

/** What v2 has another form of, wherever it shows a payment. */
const legacyFields = (payment: Payment) => ({
  status: legacyStatus(payment),
  valueUsd: String(inUsCents(payment.grossAmountCents, payment.currency)),
  txHash: payment.deposit?.txHash ?? null,
})

/** An item of the payment list; `GET /api/payment/:paymentId` shows the same. */
export const legacyPaymentView = (payment: Payment, world: World): object => ({
  ...shown(payment, 'id customerId productId subscriptionId method currency metadata externalRef'),
  ...shown(payment, 'grossAmountCents merchantNetCents vatAmountCents customFields successUrl cancelUrl'),
  ...shown(payment, 'createdAt expiresAt canceledAt cancelReason'),
  ...legacyFields(payment),
  priceCents: String(payment.priceCents),
  customerEmail: emailOf(payment, world),
  tokenAmount: payment.deposit?.expected ?? null,
  asset: payment.deposit && assetView(payment.deposit),
  isSandbox: true,
})

export const legacySubscriptionView = (subscription: Subscription, world: World): object => ({
  ...shown(subscription, 'id status productId customerId cancelAtPeriodEnd externalRef metadata'),
  ...shown(subscription, 'createdAt updatedAt'),
  customerEmail: emailOf(subscription, world),
  expiresAt: isoOrNull(accessEnd(subscription)),
  isSandbox: true,
})

export const legacyCustomerView = (customer: Customer): object =>
  shown(customer, 'id email name createdAt updatedAt')

/** A payment within the record of a customer that was found by email. */
export function customerPaymentView(payment: Payment): object {
  const { deposit, grossAmountCents } = payment
  const { status, valueUsd } = legacyFields(payment)
  const decimals = deposit === null ? 2 : assetView(deposit).decimals
  const amount = deposit?.expected ?? String(grossAmountCents)
  const own = shown(payment, 'id productId method currency createdAt updatedAt')
  return { ...own, status, amount, decimals, valueUsd }
}

// The `data` of legacy events

function inEvents(payment: Payment) {
  const { method, deposit } = payment
  const source: LegacyPayment['source'] = method && (deposit === null ? 'FIAT' : 'CRYPTO')
  return { ...payment, ...legacyFields(payment), source }
}

export function legacyPaymentEvent(payment: Payment, world: World): object {
  const context = {
    ...shown(payment, 'externalRef metadata successUrl cancelUrl'),
    // Collected at the first checkout alone: renewals carry both as null.
    ...((payment.customFields || payment.purpose === 'cycle') &&
      shown(payment, 'customFields customFieldsResponse')),
  }
  return legacyPaymentData(inEvents(payment), customerOf(payment, world), context)
}

export function legacySubscriptionEvent(subscription: Subscription, world: World, last?: Payment): object {
  const paidUntil = { ...subscription, expiresAt: accessEnd(subscription) }
  const context = shown(subscription, 'externalRef metadata')
  const person = customerOf(subscription, world)
  return legacySubscriptionData(paidUntil, last ? inEvents(last) : null, person, context)
}

export function settledEvent(payment: Payment, world: World, id: string): object {
  const { merchantNetCents: payoutAmountCents, paymentSettledAt } = payment
  const payout = { id, payoutAmountCents, paidOutAt: paymentSettledAt ?? world.now }
  return legacySettledData(payout, inEvents(payment), customerOf(payment, world))
}
