/* The same records as v2 shows them. */

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

export const LEGACY_PAYMENT_STATUSES = [...OTHER_NAMES, ...Object.values(LEGACY_NAMES)]

export function legacyStatus(payment: Payment): (typeof LEGACY_PAYMENT_STATUSES)[number] {
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
  priceCents: String(payment.priceCents),
  valueUsd: String(inUsCents(payment.grossAmountCents, payment.currency)),
  txHash: payment.deposit?.txHash ?? null,
})

/** An item of the payment list; `GET /api/payment/:paymentId` shows the same. */
export const legacyPaymentView = (payment: Payment, world: World): object => ({
  ...shown(payment, 'id customerId productId subscriptionId method currency metadata externalRef'),
  ...shown(payment, 'grossAmountCents merchantNetCents vatAmountCents customFields successUrl cancelUrl'),
  ...shown(payment, 'createdAt expiresAt canceledAt cancelReason'),
  ...legacyFields(payment),
  customerEmail: emailOf(payment, world),
  tokenAmount: payment.deposit?.expected ?? null,
  asset: payment.deposit && assetView(payment.deposit),
  isSandbox: true,
})

export const legacySubscriptionView = (subscription: Subscription, world: World): object => ({
  ...shown(subscription, 'id status productId customerId cancelAtPeriodEnd externalRef metadata'),
  ...shown(subscription, 'createdAt updatedAt'),
  customerEmail: emailOf(subscription, world),
  expiresAt: accessEnd(subscription),
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

/** As payment events show the buyer; null where nobody is known. */
const buyerView = (payment: Payment, world: World): object => ({
  customerId: payment.customerId,
  customerEmail: emailOf(payment, world),
  customerCommunityId: customerOf(payment, world)?.communityId ?? null,
  customerMessengerId: customerOf(payment, world)?.messengerId ?? null,
})

/** The `data` of a legacy payment event. */
export function legacyPaymentData(payment: Payment, world: World): object {
  const { deposit, method, purpose } = payment
  const customer = customerOf(payment, world)
  const isCard = deposit === null
  return {
    payment: {
      ...shown(payment, 'id subscriptionId productId currency'),
      ...legacyFields(payment),
      vatAmountCents: isCard ? payment.vatAmountCents : null,
      totalAmountCents: isCard ? payment.grossAmountCents : null,
      refundedAmountCents: isCard ? payment.refundedAmountCents : null,
      source: method === null ? null : isCard ? 'FIAT' : 'CRYPTO',
      ...buyerView(payment, world),
      customerCommunityUsername: customer?.communityUsername ?? null,
      customerMessengerUsername: customer?.messengerUsername ?? null,
    },
    context: {
      ...shown(payment, 'externalRef metadata successUrl cancelUrl'),
      // Collected at the first checkout alone: renewals carry both as null.
      ...((payment.customFields || purpose === 'cycle') &&
        shown(payment, 'customFields customFieldsResponse')),
    },
  }
}

/** The `data` of a legacy subscription event. */
export function legacySubscriptionData(
  subscription: Subscription,
  world: World,
  last: Payment | undefined,
): object {
  const { status, priceCents } = last ? legacyFields(last) : {}
  const accounts = 'email communityId messengerId communityUsername messengerUsername'
  return {
    subscription: { ...shown(subscription, 'id status productId'), expiresAt: accessEnd(subscription) },
    lastPayment: last ? { ...shown(last, 'id currency createdAt'), status, priceCents } : null,
    customer: { id: subscription.customerId, ...shown(customerOf(subscription, world), accounts) },
    context: shown(subscription, 'externalRef metadata'),
  }
}

/** The `data` of `PAYMENT_SETTLED`: one payout of one payment. */
export function settledData(payment: Payment, world: World, payoutId: string): object {
  const { currency, merchantNetCents: payoutAmountCents, paymentSettledAt } = payment
  const { priceCents } = legacyFields(payment)
  const own = shown(
    payment,
    'id productId subscriptionId currency grossAmountCents merchantNetCents externalRef',
  )
  return {
    payouts: [{ id: payoutId, payoutAmountCents, currency, paidOutAt: isoOrNull(paymentSettledAt) }],
    payments: [{ ...own, payoutId, priceCents, ...buyerView(payment, world) }],
  }
}
