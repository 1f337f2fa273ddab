import { isJsonObject, type JsonObject } from './json.js'
import { customersNamedBy } from './named-customers.js'

/** Fields that stay of what is about an erased person: the payments service's own ids, words, amounts and times. */
const KEPT_FIELDS: ReadonlySet<string> = new Set(
  [
    ['id', 'object', 'type', 'status', 'currency', 'livemode'],
    ['customer', 'customerId', 'payment', 'paymentId', 'lastPayment', 'lastPaymentId', 'payoutId'],
    ['subscription', 'subscriptionId', 'product', 'productId'],
    ['priceCents', 'grossAmountCents', 'merchantNetCents', 'vatAmountCents', 'totalAmountCents'],
    ['refundedAmountCents', 'payoutAmountCents', 'valueUsd'],
    ['createdAt', 'updatedAt', 'paidOutAt', 'expiresAt'],
  ]
    .flat()
    .map(plainName),
)

/**
 * The body without what it tells of erased customers, of whom its objects keep only what no person is known by. What
 * is about others stays as it is.
 */
export function redactBody(body: JsonObject, isErased: (customerId: string) => boolean): JsonObject {
  return redactObject(body, isErased, false)
}

function redactObject(
  object: JsonObject,
  isErased: (customerId: string) => boolean,
  isWithinTheirs: boolean,
): JsonObject {
  const named = customersNamedBy(object)
  const isTheirs = named.length === 0 ? isWithinTheirs : named.some(isErased)
  const kept = Object.entries(object)
    .filter(([name, value]) => !isTheirs || isNested(value) || KEPT_FIELDS.has(plainName(name)))
    .map(([name, value]) => [name, redactValue(value, isErased, isTheirs)])
  return Object.fromEntries(kept)
}

function redactValue(value: unknown, isErased: (customerId: string) => boolean, isTheirs: boolean): unknown {
  if (isJsonObject(value)) return redactObject(value, isErased, isTheirs)
  if (!Array.isArray(value)) return value
  const kept: readonly unknown[] = isTheirs ? value.filter(isNested) : value
  return kept.map((one) => redactValue(one, isErased, isTheirs))
}

function isNested(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** One name in either casing. */
function plainName(name: string): string {
  return name.replaceAll('_', '').toLowerCase()
}
