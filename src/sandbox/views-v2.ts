/* The same records as v2 shows them. */

import type { Customer, Payment, Product, Subscription } from './model.js'
import { inUsCents } from './pricing.js'
import { assetView, iso, isoOrNull, type Parties, productFields, shown } from './views-v3.js'

export const LEGACY_PAYMENT_STATUSES = [
  ...([
    'INITIATED',
    'PENDING',
    'PROCESSING',
    'CHECKOUT_SUCCESS',
    'CHECKOUT_FAILED',
    'PAYMENT_SUCCESS',
  ] as const),
  ...([
    'TX_SUCCESS',
    'TX_EXPIRED',
    'FAILED',
    'REFUNDED',
    'CHARGEBACK',
    'PARTIALLY_REFUNDED',
    'CANCELED',
  ] as const),
]
type LegacyPaymentStatus = (typeof LEGACY_PAYMENT_STATUSES)[number]

/** The legacy status of a payment; the document gives the names, and the sandbox what they stand for. */
export function legacyStatus({
  status,
  chargebackAt,
  method,
  deposit,
  statusTimeline,
}: Payment): LegacyPaymentStatus {
  if (chargebackAt !== null) return 'CHARGEBACK'
  const wasAuthorized = statusTimeline.some((entry) => entry.status === 'AUTHORIZED')
  const failed = deposit === null && !wasAuthorized ? 'CHECKOUT_FAILED' : 'FAILED'
  const byStatus: Readonly<Record<Payment['status'], LegacyPaymentStatus>> = {
    PENDING: method === null ? 'INITIATED' : 'PENDING',
    ...{ PENDING_3DS: 'PENDING', PENDING_REDIRECT: 'PENDING', PARTIAL: 'PENDING' },
    ...{ RECEIVED: 'PROCESSING', BRIDGING: 'PROCESSING', AUTHORIZED: 'CHECKOUT_SUCCESS' },
    COMPLETED: deposit === null ? 'PAYMENT_SUCCESS' : 'TX_SUCCESS',
    ...{ FAILED: failed, DECLINED: failed, EXPIRED: 'TX_EXPIRED' },
    ...{ REFUNDED: 'REFUNDED', PARTIALLY_REFUNDED: 'PARTIALLY_REFUNDED', CANCELED: 'CANCELED' },
  }
  return byStatus[status]
}

export const legacyProductView: (product: Product) => object = productFields

const valueUsd = ({ grossAmountCents, currency }: Payment): string =>
  String(inUsCents(grossAmountCents, currency))

/** An item of the payment list; `GET /api/payment/:paymentId` shows the same. */
export function legacyPaymentView(payment: Payment, customer: Customer | undefined): object {
  const { deposit } = payment
  return {
    ...shown(
      payment,
      'id customerId method currency subscriptionId productId metadata externalRef successUrl cancelUrl',
    ),
    ...shown(payment, 'grossAmountCents merchantNetCents vatAmountCents customFields'),
    ...shown(payment, 'createdAt expiresAt canceledAt cancelReason'),
    txHash: deposit?.txHash ?? null,
    customerEmail: customer?.email ?? null,
    tokenAmount: deposit?.expected ?? null,
    valueUsd: valueUsd(payment),
    priceCents: String(payment.priceCents),
    status: legacyStatus(payment),
    asset: deposit && assetView(deposit),
    isSandbox: true,
  }
}

export function legacySubscriptionView(subscription: Subscription, customer: Customer | undefined): object {
  return {
    ...shown(
      subscription,
      'id status productId customerId cancelAtPeriodEnd externalRef metadata createdAt updatedAt',
    ),
    customerEmail: customer?.email ?? null,
    expiresAt: isoOrNull(subscription.currentCycleDueAt ?? subscription.endedAt),
    isSandbox: true,
  }
}

export function legacyCustomerView(customer: Customer) {
  return shown(customer, 'id email name createdAt updatedAt')
}

/** A payment within the record of a customer that was found by email. */
export function customerPaymentView(payment: Payment): object {
  const { deposit, grossAmountCents } = payment
  const { decimals = 2 } = deposit ? (assetView(deposit) as { readonly decimals?: number }) : {}
  const amount = deposit?.expected ?? String(grossAmountCents)
  const own = shown(payment, 'id productId method currency createdAt updatedAt')
  return { ...own, status: legacyStatus(payment), amount, decimals, valueUsd: valueUsd(payment) }
}

const ACCOUNTS = 'communityId messengerId communityUsername messengerUsername'

/** `communityId` as `customerCommunityId`, and so on. */
function flatCustomer(customerId: string | null, customer: Customer | undefined): object {
  const accounts = ACCOUNTS.split(' ').map((name) => [
    `customer${name.charAt(0).toUpperCase()}${name.slice(1)}`,
    customer?.[name as keyof Customer] ?? null,
  ])
  return { customerId, customerEmail: customer?.email ?? null, ...Object.fromEntries(accounts) }
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
      ...flatCustomer(payment.customerId, customer),
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
  { customer }: Parties,
  last: Payment | undefined,
): object {
  const { id, status, productId, customerId, currentCycleDueAt, endedAt, externalRef, metadata } =
    subscription
  const accounts = ACCOUNTS.split(' ').map((name) => [name, customer?.[name as keyof Customer] ?? null])
  return {
    subscription: { id, status, productId, expiresAt: isoOrNull(currentCycleDueAt ?? endedAt) },
    lastPayment: last
      ? {
          ...shown(last, 'id currency createdAt'),
          status: legacyStatus(last),
          priceCents: String(last.priceCents),
        }
      : null,
    customer: { id: customerId, email: customer?.email ?? null, ...Object.fromEntries(accounts) },
    context: { externalRef, metadata },
  }
}

/** The `data` of `PAYMENT_SETTLED`: one payout of one payment. */
export function settledData(payment: Payment, customer: Customer | undefined, payoutId: string): object {
  const { currency, merchantNetCents, paymentSettledAt, priceCents, customerId } = payment
  const paidOutAt = iso(paymentSettledAt ?? 0)
  const { customerCommunityUsername, customerMessengerUsername, ...buyer } = flatCustomer(
    customerId,
    customer,
  ) as Record<string, unknown>
  return {
    payouts: [{ id: payoutId, payoutAmountCents: merchantNetCents, currency, paidOutAt }],
    payments: [
      {
        ...shown(
          payment,
          'id productId subscriptionId currency grossAmountCents merchantNetCents externalRef',
        ),
        ...{ payoutId, priceCents: String(priceCents) },
        ...buyer,
      },
    ],
  }
}
