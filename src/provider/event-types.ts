/**
 * The canonical event vocabulary: the v3 names, plus the legacy (v2) types that v3 has no word for.
 * After normalisation, no code knows which generation an event came from.
 */
export const PAYMENT_EVENT_TYPES = [
  'payment.authorized',
  'payment.succeeded',
  'payment.completed',
  'payment.failed',
  'payment.canceled',
  'payment.refunded',
  'payment.partially_refunded',
  'payment.chargeback',
  'payment.settled',
  'checkout.initiated',
  'checkout.succeeded',
  'checkout.failed',
  'checkout.canceled',
] as const

export const SUBSCRIPTION_EVENT_TYPES = [
  'subscription.created',
  'subscription.renewed',
  'subscription.updated',
  'subscription.past_due',
  'subscription.canceled',
  'subscription.expired',
] as const

export const CUSTOMER_EVENT_TYPES = ['customer.created', 'customer.updated', 'customer.deleted'] as const

/** Documented types that do not concern anybody's access. */
export const INFORMATIVE_EVENT_TYPES = [
  'payment_method.attached',
  'payment_method.detached',
  'payout.completed',
  'payout.failed',
] as const

/** Changes by hand; no provider sends these. */
export const MANUAL_EVENT_TYPES = [
  'manual.granted',
  'manual.revoked',
  'manual.blocked',
  'manual.unblocked',
  'manual.identity_linked',
  'manual.erased',
] as const

/**
 * What a record of the provider shows, where no event of a type above is missing. Only Latchkey stores these; they have no
 * effect by themselves, and no policy can name them.
 */
export const PAYMENT_REPORTED = 'payment.reported'
export const SUBSCRIPTION_REPORTED = 'subscription.reported'

export type PaymentEventType = (typeof PAYMENT_EVENT_TYPES)[number]
export type SubscriptionEventType = (typeof SUBSCRIPTION_EVENT_TYPES)[number]
export type CustomerEventType = (typeof CUSTOMER_EVENT_TYPES)[number]
export type ManualEventType = (typeof MANUAL_EVENT_TYPES)[number]

/** Legacy types and their canonical names. `PAYMENT_SETTLED` has none: it covers many payments and payouts. */
export const CANONICAL_TYPE_OF_V2 = {
  CHECKOUT_INITIATED: 'checkout.initiated',
  CHECKOUT_SUCCESS: 'checkout.succeeded',
  CHECKOUT_FAILED: 'checkout.failed',
  CHECKOUT_CANCELED: 'checkout.canceled',
  PAYMENT_SUCCESS: 'payment.succeeded',
  PAYMENT_FAILED: 'payment.failed',
  PARTIAL_REFUNDED: 'payment.partially_refunded',
  PAYMENT_REFUNDED: 'payment.refunded',
  PAYMENT_CHARGEBACK: 'payment.chargeback',
  SUBSCRIPTION_CREATED: 'subscription.created',
  SUBSCRIPTION_RENEWED: 'subscription.renewed',
  SUBSCRIPTION_PAST_DUE: 'subscription.past_due',
  SUBSCRIPTION_EXPIRED: 'subscription.expired',
} as const satisfies Record<string, PaymentEventType | SubscriptionEventType>

export type V2EventType = keyof typeof CANONICAL_TYPE_OF_V2

/** Types that only the legacy generation sends; v3 sends every other one. */
const LEGACY_ONLY = [
  'checkout.initiated',
  'checkout.failed',
  'checkout.canceled',
] as const satisfies readonly (typeof CANONICAL_TYPE_OF_V2)[V2EventType][]
export type LegacyOnly = (typeof LEGACY_ONLY)[number]

/** Every canonical type of an event that the provider sends. */
export type SentEventType =
  | PaymentEventType
  | SubscriptionEventType
  | CustomerEventType
  | (typeof INFORMATIVE_EVENT_TYPES)[number]

/** Every documented type of each generation. */
export const WIRE_TYPES: Readonly<Record<'v2' | 'v3', readonly string[]>> = {
  v2: [...Object.keys(CANONICAL_TYPE_OF_V2), 'PAYMENT_SETTLED'],
  v3: [
    ...PAYMENT_EVENT_TYPES,
    ...SUBSCRIPTION_EVENT_TYPES,
    ...CUSTOMER_EVENT_TYPES,
    ...INFORMATIVE_EVENT_TYPES,
  ].filter((type) => !LEGACY_ONLY.some((one) => one === type)),
}

/**
 * The generation's name for a type of either generation; undefined if it does not send the type.
 * @param generation left out: the one that the name belongs to
 */
export function wireTypeOf(type: string, generation?: keyof typeof WIRE_TYPES): string | undefined {
  const sent = generation ? WIRE_TYPES[generation] : [...WIRE_TYPES.v3, ...WIRE_TYPES.v2]
  const inBoth = Object.entries(CANONICAL_TYPE_OF_V2).find((names) => names.some((name) => name === type))
  return [type, ...(inBoth ?? [])].find((name) => sent.includes(name))
}
