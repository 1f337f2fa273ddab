/* The records as v3 shows them: in answers, and, in snake_case, in events. */

import { formatInstant } from '../provider/instant.js'
import { API_VERSION } from '../provider/wire-event.js'
import type { Customer, Deposit, Endpoint, Payment, Product, SavedMethod, Subscription } from './model.js'
import { assetOf, CHAINS } from './pricing.js'
import type { World } from './world.js'

const organizationId = 'org_sandbox'

export const isoOrNull = (instant: number | null): string | null =>
  instant === null ? null : formatInstant(instant)

/** The words of a text, with one space between two. */
type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text

/** Some fields of a record, named in one text; those of instants become ISO 8601. Without a record, all are null. */
export function shown<One extends object, Text extends string>(
  record: One | undefined,
  names: Text & (Words<Text> extends keyof One ? unknown : never),
): { readonly [Name in Words<Text>]: unknown } {
  const fields = names.split(' ').map((name) => {
    const value: unknown = record?.[name as keyof One] ?? null
    return [name, typeof value === 'number' && /(At|For)$/.test(name) ? formatInstant(value) : value]
  })
  return Object.fromEntries(fields)
}

const priceOf = ({ priceCents = null }: Partial<Product> = {}) => ({
  priceCents: priceCents && String(priceCents),
})

/** What both generations show of a product. */
export function productFields(product: Product): object {
  const { acceptedAssets, acceptedChains, platform } = product
  const decimalsOf = (symbol: string) =>
    acceptedChains.map((id) => assetOf(id, symbol)).find(Boolean)?.decimals
  return {
    ...shown(product, 'id name description status platform currency supply imageUrl createdAt'),
    ...shown(product, 'paymentMethods frequencyInDays'),
    ...priceOf(product),
    acceptedAssets: acceptedAssets.map((symbol) => ({ symbol, decimals: decimalsOf(symbol) })),
    acceptedChains: acceptedChains.map((id) => ({ id, name: CHAINS[id]?.name })),
    ...(platform === 'COMMUNITY' && shown(product, 'communityGuildId communityRoleId communityRemindersId')),
    ...(platform === 'MESSENGER' && shown(product, 'messengerGroupId')),
  }
}

export const productView = (product: Product): object => ({
  organizationId,
  ...productFields(product),
  ...shown(product, 'isCustomPrice taxInclusive updatedAt'),
})

export const customerView = (customer: Customer): object => ({
  organizationId,
  ...shown(customer, 'id email name createdAt updatedAt'),
  billingAddress: customer.country && { country: customer.country },
})

export const methodView = (method: SavedMethod): object => shown(method, 'id customerId type last4 createdAt')

export const endpointView = (endpoint: Endpoint): object => ({
  organizationId,
  ...shown(endpoint, 'id url description enabledEvents isActive createdAt updatedAt'),
  apiVersion: endpoint.generation === 'v3' ? API_VERSION : '2',
})

type Change = Subscription['changes'][number]

export const changeView = (change: Change): object =>
  shown(change, 'id type targetPriceId scheduledFor appliedAt canceledAt')

export function pendingChange({ changes }: Subscription): Change | null {
  return changes.find(({ appliedAt, canceledAt }) => appliedAt === null && canceledAt === null) ?? null
}

export const subscriptionView = (subscription: Subscription): object => ({
  organizationId,
  ...shown(subscription, 'id customerId productId status externalRef createdAt updatedAt'),
  ...shown(subscription, 'currentCycle totalCycles currentCycleDueAt cancelAtPeriodEnd'),
  ...shown(subscription, 'renewalAttempt nextRenewalAttemptAt lastDeclineCategory'),
  trialEndAt: null,
})

/** One alone shows the plan change that is queued, too. */
export function wholeSubscriptionView(subscription: Subscription): object {
  const change = pendingChange(subscription)
  return { ...subscriptionView(subscription), scheduledChange: change && changeView(change) }
}

export function paymentView(payment: Payment, world: World): Record<string, unknown> {
  const { deposit, currency } = payment
  const product = world.find('product', payment.productId)
  return {
    organizationId,
    ...shown(payment, 'id customerId productId subscriptionId status declineCode declineCategory currency'),
    displayName: product?.name ?? null,
    displayDescription: product?.description ?? null,
    displayImageUrl: product?.imageUrl ?? null,
    priceCents: String(payment.priceCents),
    tokenAmount: deposit?.expected ?? null,
    tokenFeeAmount: deposit && '0',
    quoteFiatAmountCents: deposit && payment.grossAmountCents,
    quoteFiatCurrency: deposit && currency,
    ...shown(payment, 'grossAmountCents platformFeeCents merchantNetCents vatRateBps taxInclusive'),
    vatAmountCents: payment.vatRateBps === null ? null : payment.vatAmountCents,
    refundedAmountCents: payment.refundedAmountCents || null,
    cryptoSettlementMode: deposit?.mode ?? null,
    settlementAsset: deposit && (deposit.mode === 'AUTOSWAP' ? 'USDC' : deposit.symbol),
    settlementRecipient: deposit && madeUpAddress(`merchant ${deposit.chainId}`),
    depositAddress: deposit && madeUpAddress(payment.id),
    settlementTxHash: payment.paymentSettledAt === null ? null : (deposit?.txHash ?? null),
    settlementChainId: deposit?.chainId ?? null,
    ...shown(payment, 'successUrl cancelUrl externalRef metadata'),
    ...shown(payment, 'paymentReceivedAt paymentSettledAt refundedAt createdAt updatedAt expiresAt'),
    statusTimeline: payment.statusTimeline.map(({ status, at }) => ({ status, at: formatInstant(at) })),
    asset: deposit && assetView(deposit),
    deposit: deposit && depositView(deposit),
  }
}

/** The same each time: nothing is ever sent there. */
const madeUpAddress = (text: string): string =>
  `0x${Buffer.from(text).toString('hex').padEnd(40, '0').slice(-40)}`

export function assetView({ chainId, symbol }: Deposit) {
  const { decimals = 0, address = 'NATIVE' } = assetOf(chainId, symbol) ?? {}
  return { chainId, symbol, decimals, address }
}

function depositView({ chainId, expected, received, observed, detectedAt, warnings }: Deposit): object {
  const remaining = BigInt(expected) - BigInt(received)
  const required = CHAINS[chainId]?.confirmations ?? 1
  const confirmations = observed === null ? null : { observed, required, detectedAt: isoOrNull(detectedAt) }
  return { expected, received, remaining: String(remaining > 0n ? remaining : 0n), confirmations, warnings }
}

/** The `data` of a payment event: the payment's own fields, of which the document shows three. */
export function paymentData(payment: Payment, world: World): object {
  const { statusTimeline, ...fields } = paymentView(payment, world)
  return { object: 'payment', ...fields, status: payment.status.toLowerCase() }
}

/** The `data` of a subscription event, field by field as the document has it. */
export function subscriptionData(subscription: Subscription, world: World): object {
  const { customerId, productId, status } = subscription
  const product = world.find('product', productId)
  return {
    object: 'subscription',
    ...shown(subscription, 'id currentCycle totalCycles cancelAtPeriodEnd'),
    status: status.toLowerCase(),
    expiresAt: isoOrNull(accessEnd(subscription)),
    organizationId,
    customer: { object: 'customer', id: customerId, email: emailOf(subscription, world) },
    product: {
      object: 'product',
      ...shown(product, 'id name currency frequencyInDays'),
      ...priceOf(product),
    },
  }
}

export const accessEnd = ({ currentCycleDueAt, endedAt }: Subscription) => currentCycleDueAt ?? endedAt

type Owned = Pick<Payment, 'customerId'>
export const customerOf = ({ customerId }: Owned, world: World) => world.find('customer', customerId)
export const emailOf = (record: Owned, world: World) => customerOf(record, world)?.email ?? null
