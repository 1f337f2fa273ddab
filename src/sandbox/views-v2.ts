/* The same records as v2 shows them. */

import type { Customer, Payment, PaymentStatus, Subscription } from './model.js'
import { inUsCents } from './pricing.js'
import { assetView, iso, isoOrNull, type Parties, shown } from './views-v3.js'
import type { World } from './world.js'

/** The document gives the names, and the sandbox what they stand for. */
const STATUS_NAMES = {
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

export const LEGACY_PAYMENT_STATUSES = [...OTHER_NAMES, ...Object.values(STATUS_NAMES)]

export function legacyStatus(payment: Payment): (typeof LEGACY_PAYMENT_STATUSES)[number] {
  const { status, chargebackAt, method, deposit, statusTimeline } = payment
  const name = STATUS_NAMES[status]
  if (chargebackAt !== null) return 'CHARGEBACK'
  if (status === 'PENDING' && method === null) return 'INITIATED'
  if (status === 'COMPLETED' && deposit !== null) return 'TX_SUCCESS'
  const wasAuthorized = statusTimeline.some((entry) => entry.status === 'AUTHORIZED')
  return name === 'FAILED' && deposit === null && !wasAuthorized ? 'CHECKOUT_FAILED' : name
}

const valueUsd = ({ grossAmountCents, currency }: Payment): string =>
  String(inUsCents(grossAmountCents, currency))

/** An item of the payment list; `GET /api/payment/:paymentId` shows the same. */
export function legacyPaymentView(payment: Payment, world: World): object {
  const { deposit, customerId } = payment
  return {
    ...shown(payment, 'id customerId productId subscriptionId method currency metadata externalRef'),
    ...shown(payment, 'grossAmountCents merchantNetCents vatAmountCents customFields successUrl cancelUrl'),
    ...shown(payment, 'createdAt expiresAt canceledAt cancelReason'),
    txHash: deposit?.txHash ?? null,
    customerEmail: world.find('customer', customerId)?.email ?? null,
    tokenAmount: deposit?.expected ?? null,
    valueUsd: valueUsd(payment),
    priceCents: String(payment.priceCents),
    status: legacyStatus(payment),
    asset: deposit && assetView(deposit),
    isSandbox: true,
  }
}

export function legacySubscriptionView(subscription: Subscription, world: World): object {
  return {
    ...shown(subscription, 'id status productId customerId cancelAtPeriodEnd externalRef metadata'),
    ...shown(subscription, 'createdAt updatedAt'),
    customerEmail: world.find('customer', subscription.customerId)?.email ?? null,
    expiresAt: isoOrNull(subscription.currentCycleDueAt ?? subscription.endedAt),
    isSandbox: true,
  }
}

export function legacyCustomerView(customer: Customer): object {
  return shown(customer, 'id email name createdAt updatedAt')
}

/** A payment within the record of a customer that was found by email. */
export function customerPaymentView(payment: Payment): object {
  const { deposit, grossAmountCents } = payment
  const decimals = deposit === null ? 2 : assetView(deposit).decimals
  const amount = deposit?.expected ?? String(grossAmountCents)
  const own = shown(payment, 'id productId method currency createdAt updatedAt')
  return { ...own, status: legacyStatus(payment), amount, decimals, valueUsd: valueUsd(payment) }
}

/** As payment events show the buyer; null where nobody is known. */
function buyerOf({ customerId }: Payment, customer: Customer | undefined): object {
  return {
    customerId,
    customerEmail: customer?.email ?? null,
    customerCommunityId: customer?.communityId ?? null,
    customerMessengerId: customer?.messengerId ?? null,
  }
}

/** The `data` of a legacy payment event. */
export function legacyPaymentData(payment: Payment, { customer }: Parties): object {
  const { deposit, method, purpose } = payment
  const isCard = deposit === null
  return {
    payment: {
      ...shown(payment, 'id subscriptionId productId currency'),
      status: legacyStatus(payment),
      valueUsd: valueUsd(payment),
      priceCents: String(payment.priceCents),
      vatAmountCents: isCard ? payment.vatAmountCents : null,
      totalAmountCents: isCard ? payment.grossAmountCents : null,
      refundedAmountCents: isCard ? payment.refundedAmountCents : null,
      txHash: deposit?.txHash ?? null,
      source: method === null ? null : isCard ? 'FIAT' : 'CRYPTO',
      ...buyerOf(payment, customer),
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

function lastPaymentView(payment: Payment): object {
  const own = shown(payment, 'id currency createdAt')
  return { ...own, status: legacyStatus(payment), priceCents: String(payment.priceCents) }
}

const ACCOUNTS = 'email communityId messengerId communityUsername messengerUsername'

/** The `data` of a legacy subscription event. */
export function legacySubscriptionData(
  subscription: Subscription,
  { customer }: Parties,
  last: Payment | undefined,
): object {
  const { customerId, currentCycleDueAt, endedAt } = subscription
  const expiresAt = isoOrNull(currentCycleDueAt ?? endedAt)
  return {
    subscription: { ...shown(subscription, 'id status productId'), expiresAt },
    lastPayment: last ? lastPaymentView(last) : null,
    customer: { id: customerId, ...shown(customer, ACCOUNTS) },
    context: shown(subscription, 'externalRef metadata'),
  }
}

/** The `data` of `PAYMENT_SETTLED`: one payout of one payment. */
export function settledData(payment: Payment, customer: Customer | undefined, payoutId: string): object {
  const { currency, merchantNetCents, paymentSettledAt, externalRef } = payment
  const paidOutAt = iso(paymentSettledAt ?? 0)
  const priceCents = String(payment.priceCents)
  const own = shown(payment, 'id productId subscriptionId currency grossAmountCents merchantNetCents')
  return {
    payouts: [{ id: payoutId, payoutAmountCents: merchantNetCents, currency, paidOutAt }],
    payments: [{ ...own, externalRef, payoutId, priceCents, ...buyerOf(payment, customer) }],
  }
}
