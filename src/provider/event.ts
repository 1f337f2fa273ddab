import type { AccountDetail } from './accounts.js'
import type {
  CustomerEventType,
  ManualEventType,
  PaymentEventType,
  SubscriptionEventType,
} from './event-types.js'

export type Environment = 'live' | 'sandbox'
export type Generation = 'v2' | 'v3'

/** How a payment was made, if anything proves it. */
export type ProvenRail = 'card' | 'crypto'
export type Rail = ProvenRail | 'unknown'

/** The evidence in an event for its payment's rail; `strength` ranks it: method field, type, rail-only field. */
export interface RailProof {
  readonly rail: ProvenRail
  readonly strength: 3 | 2 | 1
}

/** Details of the person in an event; null where it has none. Personal data: never logged. */
export type CustomerDetails = Readonly<Record<'email' | 'name' | AccountDetail, string | null>>

interface EventFacts {
  /** The `evt_` id, or the `man_` id of a change by hand; unique within an environment. */
  readonly id: string
  /** Null if `type` has the form of neither generation. */
  readonly generation: Generation | null
  /** When it happened at the provider, in epoch milliseconds; not when it was delivered. */
  readonly createdAt: number
  readonly apiVersion: string | null
  readonly customerId: string | null
  readonly productId: string | null
  readonly customer: CustomerDetails
  /** The merchant's own reference and metadata; text and number values of metadata are kept as text. */
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
  /** Null unless the event has both fields; a field with the value `null` counts as present. */
  readonly cycles: { readonly current: number | null; readonly total: number | null } | null
  readonly cancelAtPeriodEnd: boolean | null
  /** The end of the paid period, in epoch milliseconds. */
  readonly expiresAt: number | null
}

export interface CustomerEvent extends EventFacts {
  readonly subject: 'customer'
  readonly type: CustomerEventType
}

/** Authentic and stored, but without effect on access: payouts, payment methods, unknown types. */
export interface OtherEvent extends EventFacts {
  readonly subject: 'other'
  readonly type: string
}

/**
 * A change that an operator made by hand to one customer. The provider does not know it: it has no generation, and the
 * identity that it links is in `customer`.
 */
export interface ManualEvent extends EventFacts {
  readonly subject: 'manual'
  readonly type: ManualEventType
  readonly customerId: string
  /** Null for blocks that concern every product, and for links. */
  readonly productId: string | null
  /** The end of a grant, in epoch milliseconds; null: for good, and for every other type. */
  readonly until: number | null
  /** Who made the change: an API key's name, or the system user. */
  readonly actor: string
  readonly reason: string | null
}

/** One event of either generation, or by hand, in the vocabulary of all code after normalisation. */
export type NormalizedEvent = PaymentEvent | SubscriptionEvent | CustomerEvent | OtherEvent | ManualEvent

/** Why authentic bytes can't be used. They are kept, and a later version of the program may read them. */
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

/** `id` is the event's own if it has a usable one. */
export type Normalized =
  | { readonly ok: true; readonly event: NormalizedEvent }
  | { readonly ok: false; readonly reason: QuarantineReason; readonly id: string | null }

/** Stored with every normalised event. Raise it when the same bytes would normalise differently. */
export const NORMALIZER_VERSION = 1
