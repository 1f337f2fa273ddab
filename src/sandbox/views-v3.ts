/* The records as v3 shows them: in answers, and, in snake_case, in events. */

import type {
  Customer,
  Deposit,
  Endpoint,
  Payment,
  Product,
  SavedMethod,
  ScheduledChange,
  Subscription,
} from './model.js'
import { assetOf, CHAINS } from './pricing.js'

export const ORGANIZATION_ID = 'org_sandbox'
export const API_VERSION = '3.0.0-beta'

export const iso = (instant: number): string => new Date(instant).toISOString()
export const isoOrNull = (instant: number | null): string | null => (instant === null ? null : iso(instant))
const text = (cents: number | null): string | null => (cents === null ? null : String(cents))

const dates = ({ createdAt, updatedAt }: { readonly createdAt: number; readonly updatedAt: number }) => ({
  createdAt: iso(createdAt),
  updatedAt: iso(updatedAt),
})

export function productView(product: Product): object {
  return {
    id: product.id,
    organizationId: ORGANIZATION_ID,
    ...productFields(product),
    isCustomPrice: product.isCustomPrice,
    taxInclusive: product.taxInclusive,
    ...dates(product),
  }
}

/** What both generations show of a product. */
export function productFields(product: Product): object {
  const { name, description, status, platform, frequencyInDays, currency, supply, imageUrl } = product
  const acceptedAssets = product.assets.map((symbol) => {
    const chainId = product.chains.find((id) => assetOf(id, symbol) !== undefined) ?? 0
    return { symbol, decimals: assetOf(chainId, symbol)?.decimals ?? 0 }
  })
  return {
    ...{ name, description, status, platform, frequencyInDays },
    priceCents: text(product.priceCents),
    ...{ currency, supply, imageUrl },
    createdAt: iso(product.createdAt),
    paymentMethods: product.paymentMethods,
    acceptedAssets,
    acceptedChains: product.chains.map((id) => ({ id, name: CHAINS[id]?.name })),
    ...(platform === 'COMMUNITY' && {
      communityGuildId: product.communityGuildId,
      communityRoleId: product.communityRoleId,
      communityRemindersId: product.communityRemindersId,
    }),
    ...(platform === 'MESSENGER' && { messengerGroupId: product.messengerGroupId }),
  }
}

export function customerView(customer: Customer): object {
  const { id, email, name, country } = customer
  return {
    id,
    organizationId: ORGANIZATION_ID,
    email,
    name,
    billingAddress: country && { country },
    ...dates(customer),
  }
}

export function methodView({ id, customerId, type, last4, createdAt }: SavedMethod): object {
  return { id, customerId, type, last4, createdAt: iso(createdAt) }
}

export function endpointView(endpoint: Endpoint): object {
  const { id, url, description, enabledEvents, isActive } = endpoint
  const organizationId = ORGANIZATION_ID
  const apiVersion = endpoint.generation === 'v3' ? API_VERSION : '2'
  return { id, organizationId, url, description, enabledEvents, isActive, apiVersion, ...dates(endpoint) }
}

export function scheduledChangeView(change: ScheduledChange): object {
  return {
    id: change.id,
    type: change.type,
    targetPriceId: change.targetProductId,
    scheduledFor: iso(change.scheduledFor),
    appliedAt: isoOrNull(change.appliedAt),
    canceledAt: isoOrNull(change.canceledAt),
  }
}

export function subscriptionView(subscription: Subscription): object {
  const { id, customerId, productId, status, currentCycle, totalCycles, externalRef } = subscription
  return {
    ...{ id, organizationId: ORGANIZATION_ID, customerId, productId, status, currentCycle, totalCycles },
    trialEndAt: null,
    cancelAtPeriodEnd: subscription.cancelAtPeriodEnd,
    currentCycleDueAt: isoOrNull(subscription.dueAt),
    renewalAttempt: subscription.renewalAttempt,
    nextRenewalAttemptAt: isoOrNull(subscription.nextRenewalAttemptAt),
    lastDeclineCategory: subscription.lastDeclineCategory,
    externalRef,
    ...dates(subscription),
  }
}

export function pendingChange(subscription: Subscription): ScheduledChange | null {
  return (
    subscription.changes.find(({ appliedAt, canceledAt }) => appliedAt === null && canceledAt === null) ??
    null
  )
}

export function paymentView(payment: Payment, product: Product | undefined): object {
  const { deposit, priceCents, currency } = payment
  const isPaid = payment.receivedAt !== null
  return {
    id: payment.id,
    organizationId: ORGANIZATION_ID,
    customerId: payment.customerId,
    productId: payment.productId,
    subscriptionId: payment.subscriptionId,
    status: payment.status,
    declineCode: payment.declineCode,
    declineCategory: payment.declineCategory,
    displayName: product?.name ?? null,
    displayDescription: product?.description ?? null,
    displayImageUrl: product?.imageUrl ?? null,
    priceCents: String(priceCents),
    currency,
    tokenAmount: deposit?.expected ?? null,
    tokenFeeAmount: deposit === null ? null : '0',
    quoteFiatAmountCents: deposit === null ? null : payment.grossCents,
    quoteFiatCurrency: deposit === null ? null : currency,
    grossAmountCents: payment.grossCents,
    platformFeeCents: payment.feeCents,
    merchantNetCents: payment.netCents,
    vatAmountCents: payment.vatBps === null ? null : payment.vatCents,
    vatRateBps: payment.vatBps,
    taxInclusive: payment.taxInclusive,
    refundedAmountCents: payment.refundedCents || null,
    refundedAt: isoOrNull(payment.refundedAt),
    cryptoSettlementMode: deposit?.mode ?? null,
    settlementAsset: deposit && (deposit.mode === 'AUTOSWAP' ? 'USDC' : deposit.symbol),
    settlementRecipient: deposit && address(`merchant ${deposit.chainId}`),
    depositAddress: deposit && address(payment.id),
    settlementTxHash: isPaid ? (deposit?.txHash ?? null) : null,
    settlementChainId: deposit?.chainId ?? null,
    successUrl: payment.successUrl,
    cancelUrl: payment.cancelUrl,
    externalRef: payment.externalRef,
    metadata: payment.metadata,
    paymentReceivedAt: isoOrNull(payment.receivedAt),
    paymentSettledAt: isoOrNull(payment.settledAt),
    ...dates(payment),
    expiresAt: isoOrNull(payment.expiresAt),
    statusTimeline: payment.timeline.map(({ status, at }) => ({ status, at: iso(at) })),
    asset: deposit && assetView(deposit),
    deposit: deposit && depositView(deposit),
  }
}

/** Made up, and the same each time: nothing is ever sent there. */
const address = (text: string): string => `0x${Buffer.from(text).toString('hex').padEnd(40, '0').slice(-40)}`

export function assetView({ chainId, symbol }: Deposit): object {
  const asset = assetOf(chainId, symbol)
  return { chainId, symbol, decimals: asset?.decimals ?? 0, address: asset?.address ?? 'NATIVE' }
}

function depositView(deposit: Deposit): object {
  const { chainId, expected, received, observed, detectedAt, warnings } = deposit
  const remaining = BigInt(expected) - BigInt(received)
  return {
    expected,
    received,
    remaining: String(remaining > 0n ? remaining : 0n),
    confirmations:
      observed === null || detectedAt === null
        ? null
        : { observed, required: CHAINS[chainId]?.confirmations ?? 1, detectedAt: iso(detectedAt) },
    warnings,
  }
}

/** Who and what a subscription event is about, one level down. */
export interface Parties {
  readonly customer: Customer | undefined
  readonly product: Product | undefined
}

/** The `data` of a payment event: the payment's own fields, of which the document shows three. */
export function paymentData(payment: Payment, { product }: Parties): object {
  const { statusTimeline, ...fields } = paymentView(payment, product) as Record<string, unknown>
  return { object: 'payment', ...inSnakeCase(fields), status: payment.status.toLowerCase() }
}

/** The `data` of a subscription event, field by field as the document has it. */
export function subscriptionData(subscription: Subscription, { customer, product }: Parties): object {
  return {
    object: 'subscription',
    id: subscription.id,
    status: subscription.status.toLowerCase(),
    current_cycle: subscription.currentCycle,
    total_cycles: subscription.totalCycles,
    cancel_at_period_end: subscription.cancelAtPeriodEnd,
    expires_at: isoOrNull(subscription.dueAt ?? subscription.endedAt),
    organization_id: ORGANIZATION_ID,
    customer: { object: 'customer', id: subscription.customerId, email: customer?.email ?? null },
    product: {
      object: 'product',
      id: subscription.productId,
      name: product?.name ?? null,
      price_cents: text(product?.priceCents ?? null),
      currency: product?.currency ?? null,
      frequency_in_days: product?.frequencyInDays ?? null,
    },
  }
}

/** For events whose data the document does not show. */
export function objectData(object: string, view: object): object {
  return { object, ...inSnakeCase(view) }
}

function inSnakeCase(value: object): object {
  const entries = Object.entries(value).map(([name, one]) => [
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    typeof one === 'object' && one !== null && !Array.isArray(one) && name !== 'metadata'
      ? inSnakeCase(one)
      : one,
  ])
  return Object.fromEntries(entries)
}
