/* The records as v3 shows them: in answers, and, in snake_case, in events. */

import type { Customer, Deposit, Endpoint, Payment, Product, Subscription, Words } from './model.js'
import { assetOf, CHAINS } from './pricing.js'
import type { World } from './world.js'

const ORGANIZATION_ID = 'org_sandbox'
export const API_VERSION = '3.0.0-beta'

export const iso = (instant: number): string => new Date(instant).toISOString()
export const isoOrNull = (instant: number | null): string | null => (instant === null ? null : iso(instant))

/** Some fields of a record, named in one text; those of instants become ISO 8601. Without a record, all are null. */
export function shown<One extends object, Text extends string>(
  record: One | undefined,
  names: Text & (Words<Text> extends keyof One ? unknown : never),
): { readonly [Name in Words<Text>]: unknown } {
  const fields = names.split(' ').map((name) => {
    const value: unknown = record?.[name as keyof One] ?? null
    return [name, typeof value === 'number' && /(At|For)$/.test(name) ? iso(value) : value]
  })
  return Object.fromEntries(fields)
}

/** What both generations show of a product. */
export function productFields(product: Product): object {
  const { acceptedAssets, acceptedChains, platform, priceCents } = product
  const decimalsOf = (symbol: string) =>
    acceptedChains.map((id) => assetOf(id, symbol)).find(Boolean)?.decimals
  return {
    ...shown(product, 'id name description status platform currency supply imageUrl createdAt'),
    ...shown(product, 'paymentMethods frequencyInDays'),
    priceCents: priceCents === null ? null : String(priceCents),
    acceptedAssets: acceptedAssets.map((symbol) => ({ symbol, decimals: decimalsOf(symbol) })),
    acceptedChains: acceptedChains.map((id) => ({ id, name: CHAINS[id]?.name })),
    ...(platform === 'COMMUNITY' && shown(product, 'communityGuildId communityRoleId communityRemindersId')),
    ...(platform === 'MESSENGER' && shown(product, 'messengerGroupId')),
  }
}

export function productView(product: Product): object {
  const own = shown(product, 'isCustomPrice taxInclusive updatedAt')
  return { organizationId: ORGANIZATION_ID, ...productFields(product), ...own }
}

export function customerView(customer: Customer): object {
  const billingAddress = customer.country && { country: customer.country }
  const own = shown(customer, 'id email name createdAt updatedAt')
  return { organizationId: ORGANIZATION_ID, ...own, billingAddress }
}

/** Of a saved payment method. */
export const METHOD_FIELDS = 'id customerId type last4 createdAt'

export function endpointView(endpoint: Endpoint): object {
  const apiVersion = endpoint.generation === 'v3' ? API_VERSION : '2'
  const own = shown(endpoint, 'id url description enabledEvents isActive createdAt updatedAt')
  return { organizationId: ORGANIZATION_ID, ...own, apiVersion }
}

type Change = Subscription['changes'][number]

export function scheduledChangeView(change: Change): object {
  return shown(change, 'id type targetPriceId scheduledFor appliedAt canceledAt')
}

export function pendingChange({ changes }: Subscription): Change | null {
  return changes.find(({ appliedAt, canceledAt }) => appliedAt === null && canceledAt === null) ?? null
}

export function subscriptionView(subscription: Subscription): object {
  return {
    organizationId: ORGANIZATION_ID,
    ...shown(subscription, 'id customerId productId status externalRef createdAt updatedAt'),
    ...shown(subscription, 'currentCycle totalCycles currentCycleDueAt cancelAtPeriodEnd'),
    ...shown(subscription, 'renewalAttempt nextRenewalAttemptAt lastDeclineCategory'),
    trialEndAt: null,
  }
}

/** One alone shows the plan change that is queued, too. */
export function wholeSubscriptionView(subscription: Subscription): object {
  const change = pendingChange(subscription)
  return { ...subscriptionView(subscription), scheduledChange: change && scheduledChangeView(change) }
}

export function paymentView(payment: Payment, world: World): object {
  return paymentFields(payment, world.find('product', payment.productId))
}

function paymentFields(payment: Payment, product: Product | undefined): Record<string, unknown> {
  const { deposit, currency } = payment
  return {
    organizationId: ORGANIZATION_ID,
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
    settlementRecipient: deposit && address(`merchant ${deposit.chainId}`),
    depositAddress: deposit && address(payment.id),
    settlementTxHash: payment.paymentSettledAt === null ? null : (deposit?.txHash ?? null),
    settlementChainId: deposit?.chainId ?? null,
    ...shown(payment, 'successUrl cancelUrl externalRef metadata'),
    ...shown(payment, 'paymentReceivedAt paymentSettledAt refundedAt createdAt updatedAt expiresAt'),
    statusTimeline: payment.statusTimeline.map(({ status, at }) => ({ status, at: iso(at) })),
    asset: deposit && assetView(deposit),
    deposit: deposit && depositView(deposit),
  }
}

/** Made up, and the same each time: nothing is ever sent there. */
const address = (text: string): string => `0x${Buffer.from(text).toString('hex').padEnd(40, '0').slice(-40)}`

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

/** Who and what an event is about, one level down. */
export interface Parties {
  readonly customer: Customer | undefined
  readonly product: Product | undefined
}

/** The `data` of a payment event: the payment's own fields, of which the document shows three. */
export function paymentData(payment: Payment, { product }: Parties): object {
  const { statusTimeline, ...fields } = paymentFields(payment, product)
  return { ...objectData('payment', fields), status: payment.status.toLowerCase() }
}

/** The `data` of a subscription event, field by field as the document has it. */
export function subscriptionData(subscription: Subscription, { customer, product }: Parties): object {
  const { customerId, productId, currentCycleDueAt, endedAt } = subscription
  const { name, priceCents = null, currency, frequencyInDays } = product ?? {}
  const plan = { id: productId, name, priceCents: String(priceCents), currency, frequencyInDays }
  return {
    ...objectData('subscription', shown(subscription, 'id currentCycle totalCycles cancelAtPeriodEnd')),
    status: subscription.status.toLowerCase(),
    expires_at: isoOrNull(currentCycleDueAt ?? endedAt),
    organization_id: ORGANIZATION_ID,
    customer: { object: 'customer', id: customerId, email: customer?.email ?? null },
    product: objectData('product', plan),
  }
}

export function objectData(object: string, view: object): object {
  return { object, ...inSnakeCase(view) }
}

function inSnakeCase(value: object): object {
  const entries = Object.entries(value).map(([name, one]) => {
    const isNested = typeof one === 'object' && one !== null && !Array.isArray(one) && name !== 'metadata'
    const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    return [snake, isNested ? inSnakeCase(one) : one]
  })
  return Object.fromEntries(entries)
}
