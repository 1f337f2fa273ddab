import type {
  CustomerEventType,
  ManualEventType,
  PaymentEventType,
  SubscriptionEventType,
} from './event-types.js'

export type Environment = 'live' | 'sandbox'
export type Generation = 'v2' | 'v3'

/** How a payment was made, as far as anything proves it. */
export type ProvenRail = 'card' | 'crypto'
export type Rail = ProvenRail | 'unknown'

/** What an event shows about its payment's rail; `strength` orders proofs: method field, type, rail-only field. */
export interface RailProof {
  readonly rail: ProvenRail
  readonly strength: 3 | 2 | 1
}

/** What an event tells about the person; null where it tells nothing. Personal data: never logged. */
export interface CustomerDetails {
  readonly email: string | null
  readonly name: string | null
  readonly communityId: string | null
  readonly communityUsername: string | null
  readonly messengerId: string | null
  readonly messengerUsername: string | null
}

interface EventFacts {
  /** The `evt_` id, or the `man_` id of what was done by hand; unique within an environment. */
  readonly id: string
  /** Null where `type` has the form of neither generation. */
  readonly generation: Generation | null
  /** When it happened at the provider, in epoch milliseconds; not when it was delivered. */
  readonly createdAt: number
  readonly apiVersion: string | null
  readonly customerId: string | null
  readonly productId: string | null
  readonly customer: CustomerDetails
  /** The merchant's own reference and metadata; metadata keeps text and number values, as text. */
  readonly externalRef: string | null
  readonly metadata: Readonly<Record<string, string>>
}

/** A payment or checkout event. `subscriptionId` is the subscription that the event names, if any. */
export interface PaymentEvent extends EventFacts {
  readonly subject: 'payment'
  readonly type: PaymentEventType
  readonly paymentId: string | null
  readonly subscriptionId: string | null
  readonly railProof: RailProof | null
}

/** A subscription event. `paymentId` is the payment that the event names, if any. */
export interface SubscriptionEvent extends EventFacts {
  readonly subject: 'subscription'
  readonly type: SubscriptionEventType
  readonly subscriptionId: string | null
  readonly paymentId: string | null
  /** The provider's own status word, lower case. */
  readonly status: string | null
  /** Null unless the event carries both fields; a carried `null` counts as carried. */
  readonly cycles: { readonly current: number | null; readonly total: number | null } | null
  readonly cancelAtPeriodEnd: boolean | null
  /** The paid period's end, in epoch milliseconds. */
  readonly expiresAt: number | null
}

export interface CustomerEvent extends EventFacts {
  readonly subject: 'customer'
  readonly type: CustomerEventType
}

/** Authentic, stored, and nothing to fold: payouts, payment methods, types never seen before. */
export interface OtherEvent extends EventFacts {
  readonly subject: 'other'
  readonly type: string
}

/**
 * What an operator did by hand, to one customer. No provider knows of it: it has no generation, and what it
 * links an identity by is in `customer`.
 */
export interface ManualEvent extends EventFacts {
  readonly subject: 'manual'
  readonly type: ManualEventType
  readonly customerId: string
  /** Null where a block is put on, or lifted from, every product, and where an identity is linked. */
  readonly productId: string | null
  /** The end of a grant, in epoch milliseconds; null: for good, and for every other type. */
  readonly until: number | null
  /** Who did it: an API key's name, or the system user. */
  readonly actor: string
  readonly reason: string | null
}

/** One event of either generation, or by hand, in the one vocabulary that everything after normalisation speaks. */
export type NormalizedEvent = PaymentEvent | SubscriptionEvent | CustomerEvent | OtherEvent | ManualEvent

/** Why authentic bytes can't be used; they are kept, and read again when the program understands more. */
export const QUARANTINE_REASONS = [
  'not_utf8',
  'not_json',
  'not_an_object',
  'nested_too_deep',
  'duplicate_keys',
  'id_invalid',
  'created_at_invalid',
  'created_at_in_future',
  'livemode_mismatch',
  'reference_id_invalid',
  'normalizer_failed',
] as const
export type QuarantineReason = (typeof QUARANTINE_REASONS)[number]

/** `id` is the event's own where a usable one could be read. */
export type Normalized =
  | { readonly ok: true; readonly event: NormalizedEvent }
  | { readonly ok: false; readonly reason: QuarantineReason; readonly id: string | null }

/** Stored with every normalised event. Raise it when the same bytes would normalise differently. */
export const NORMALIZER_VERSION = 1
