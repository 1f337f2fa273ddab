/* The same records as v2 shows them. */

import type { Customer, Discount, Payment, Product, Subscription } from './model.js'
import { inUsCents } from './pricing.js'
import { assetView, iso, isoOrNull, type Parties, productFields } from './views-v3.js'

export const LEGACY_PAYMENT_STATUSES = [
  'INITIATED',
  'PENDING',
  'PROCESSING',
  'CHECKOUT_SUCCESS',
  'CHECKOUT_FAILED',
  'PAYMENT_SUCCESS',
  'TX_SUCCESS',
  'TX_EXPIRED',
  'FAILED',
  'REFUNDED',
  'CHARGEBACK',
  'PARTIALLY_REFUNDED',
  'CANCELED',
] as const
export type LegacyPaymentStatus = (typeof LEGACY_PAYMENT_STATUSES)[number]

const wasAuthorized = ({ timeline }: Payment): boolean =>
  timeline.some(({ status }) => status === 'AUTHORIZED' || status === 'COMPLETED')

/** The legacy status of a payment; the document gives the names, and the sandbox what they stand for. */
export function legacyStatus(payment: Payment): LegacyPaymentStatus {
  if (payment.chargebackAt !== null) return 'CHARGEBACK'
  const { status } = payment
  switch (status) {
    case 'PENDING':
      return payment.method === null ? 'INITIATED' : 'PENDING'
    case 'PENDING_3DS':
    case 'PENDING_REDIRECT':
    case 'PARTIAL':
      return 'PENDING'
    case 'RECEIVED':
    case 'BRIDGING':
      return 'PROCESSING'
    case 'AUTHORIZED':
      return 'CHECKOUT_SUCCESS'
    case 'COMPLETED':
      return payment.deposit === null ? 'PAYMENT_SUCCESS' : 'TX_SUCCESS'
    case 'FAILED':
    case 'DECLINED':
      return payment.deposit === null && !wasAuthorized(payment) ? 'CHECKOUT_FAILED' : 'FAILED'
    case 'EXPIRED':
      return 'TX_EXPIRED'
    case 'REFUNDED':
    case 'PARTIALLY_REFUNDED':
    case 'CANCELED':
      return status
    default:
      return status satisfies never
  }
}

export function legacyProductView(product: Product): object {
  return { id: product.id, ...productFields(product) }
}

const valueUsd = ({ grossCents, currency }: Payment): string => String(inUsCents(grossCents, currency))

/** An item of the payment list; `GET /api/payment/:paymentId` shows the same and more. */
export function legacyPaymentView(payment: Payment, customer: Customer | undefined): object {
  const { id, deposit, method, subscriptionId, productId, metadata, externalRef } = payment
  const { successUrl, cancelUrl, currency } = payment
  return {
    id,
    txHash: deposit?.txHash ?? null,
    customerId: payment.customerId,
    customerEmail: customer?.email ?? null,
    method,
    tokenAmount: deposit?.expected ?? null,
    valueUsd: valueUsd(payment),
    priceCents: String(payment.priceCents),
    currency,
    status: legacyStatus(payment),
    subscriptionId,
    asset: deposit && assetView(deposit),
    ...{ productId, isSandbox: true, metadata, externalRef, successUrl, cancelUrl },
    grossAmountCents: payment.grossCents,
    merchantNetCents: payment.netCents,
    vatAmountCents: payment.vatCents,
    createdAt: iso(payment.createdAt),
    expiresAt: isoOrNull(payment.expiresAt),
    canceledAt: isoOrNull(payment.canceledAt),
    cancelReason: payment.cancelReason,
    customFields: payment.customFields,
  }
}

export function legacySubscriptionView(subscription: Subscription, customer: Customer | undefined): object {
  const { id, status, productId, customerId, externalRef, metadata } = subscription
  return {
    ...{ id, status, productId, customerId, customerEmail: customer?.email ?? null },
    expiresAt: isoOrNull(subscription.dueAt ?? subscription.endedAt),
    cancelAtPeriodEnd: subscription.cancelAtPeriodEnd,
    ...{ externalRef, metadata, isSandbox: true },
    createdAt: iso(subscription.createdAt),
    updatedAt: iso(subscription.updatedAt),
  }
}

export function legacyCustomerView({ id, email, name, createdAt, updatedAt }: Customer): object {
  return { id, email, name, createdAt: iso(createdAt), updatedAt: iso(updatedAt) }
}

/** A payment within the record of a customer that was found by email. */
export function customerPaymentView(payment: Payment): object {
  const { id, productId, method, currency, deposit } = payment
  const asset = deposit && (assetView(deposit) as { readonly decimals: number })
  return {
    ...{ id, status: legacyStatus(payment), productId, method, currency },
    amount: deposit?.expected ?? String(payment.grossCents),
    decimals: asset?.decimals ?? 2,
    valueUsd: valueUsd(payment),
    createdAt: iso(payment.createdAt),
    updatedAt: iso(payment.updatedAt),
  }
}

export function discountView({
  id,
  code,
  percentOff,
  amountOffCents,
  productId,
  createdAt,
}: Discount): object {
  return { id, code, percentOff, amountOffCents, productId, createdAt: iso(createdAt) }
}

/** The `data` of a legacy payment event. */
export function legacyPaymentData(payment: Payment, { customer }: Parties): object {
  const isCard = payment.deposit === null
  return {
    payment: {
      id: payment.id,
      status: legacyStatus(payment),
      subscriptionId: payment.subscriptionId,
      productId: payment.productId,
      valueUsd: valueUsd(payment),
      priceCents: String(payment.priceCents),
      currency: payment.currency,
      vatAmountCents: isCard ? payment.vatCents : null,
      totalAmountCents: isCard ? payment.grossCents : null,
      refundedAmountCents: isCard ? payment.refundedCents : null,
      txHash: payment.deposit?.txHash ?? null,
      source: payment.method === null ? null : isCard ? 'FIAT' : 'CRYPTO',
      customerId: payment.customerId,
      customerEmail: customer?.email ?? null,
      customerCommunityId: customer?.communityId ?? null,
      customerMessengerId: customer?.messengerId ?? null,
      customerCommunityUsername: customer?.communityUsername ?? null,
      customerMessengerUsername: customer?.messengerUsername ?? null,
    },
    context: {
      externalRef: payment.externalRef,
      metadata: payment.metadata,
      successUrl: payment.successUrl,
      cancelUrl: payment.cancelUrl,
      // Collected at the first checkout alone: renewals carry both as null.
      ...((payment.customFields !== null || payment.purpose === 'cycle') && {
        customFields: payment.customFields,
        customFieldsResponse: payment.customFieldsResponse,
      }),
    },
  }
}

/** The `data` of a legacy subscription event. */
export function legacySubscriptionData(
  subscription: Subscription,
  { customer }: Parties,
  lastPayment: Payment | undefined,
): object {
  return {
    subscription: {
      id: subscription.id,
      status: subscription.status,
      productId: subscription.productId,
      expiresAt: isoOrNull(subscription.dueAt ?? subscription.endedAt),
    },
    lastPayment: lastPayment
      ? {
          id: lastPayment.id,
          status: legacyStatus(lastPayment),
          priceCents: String(lastPayment.priceCents),
          currency: lastPayment.currency,
          createdAt: iso(lastPayment.createdAt),
        }
      : null,
    customer: {
      id: subscription.customerId,
      email: customer?.email ?? null,
      communityId: customer?.communityId ?? null,
      messengerId: customer?.messengerId ?? null,
      communityUsername: customer?.communityUsername ?? null,
      messengerUsername: customer?.messengerUsername ?? null,
    },
    context: { externalRef: subscription.externalRef, metadata: subscription.metadata },
  }
}

export interface SettledPayment {
  readonly payment: Payment
  readonly customer: Customer | undefined
  readonly payoutId: string
}

/** The `data` of `PAYMENT_SETTLED`: one payout of one payment. */
export function settledData({ payment, customer, payoutId }: SettledPayment): object {
  const { currency, productId, subscriptionId, externalRef, customerId } = payment
  return {
    payouts: [
      {
        id: payoutId,
        payoutAmountCents: payment.netCents,
        currency,
        paidOutAt: isoOrNull(payment.settledAt),
      },
    ],
    payments: [
      {
        ...{ id: payment.id, payoutId, productId, subscriptionId },
        priceCents: String(payment.priceCents),
        currency,
        grossAmountCents: payment.grossCents,
        merchantNetCents: payment.netCents,
        ...{ customerId, customerEmail: customer?.email ?? null },
        customerCommunityId: customer?.communityId ?? null,
        customerMessengerId: customer?.messengerId ?? null,
        externalRef,
      },
    ],
  }
}
