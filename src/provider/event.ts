/* One event of either generation, or by hand, in the vocabulary of all code after normalisation. */

import { z } from 'zod'
import { DETAIL_NAMES, ofEach } from './accounts.js'
import {
  CUSTOMER_EVENT_TYPES,
  MANUAL_EVENT_TYPES,
  PAYMENT_EVENT_TYPES,
  PAYMENT_REPORTED,
  SUBSCRIPTION_EVENT_TYPES,
  SUBSCRIPTION_REPORTED,
} from './event-types.js'
import { isProviderEventId, isReportedEventId, isUsableId, MANUAL_ID_PREFIX } from './ids.js'
import { isJsonObject } from './json.js'

export type Environment = 'live' | 'sandbox'
export type Generation = 'v2' | 'v3'

/** How a payment was made, if anything proves it. */
export type ProvenRail = 'card' | 'crypto'
export type Rail = ProvenRail | 'unknown'

const usableId = z.string().refine(isUsableId)
/** A field that may be missing, which is the same as null. */
export const orNull = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().default(null)
const text = orNull(z.string())

const customerDetails = z.object(ofEach(DETAIL_NAMES, () => text))

const railProof = z.object({ rail: z.enum(['card', 'crypto']), strength: z.literal([3, 2, 1]) })

const facts = {
  /**
   * The `evt_` id, the `man_` id of a change by hand, or the `rec_` id of what Latchkey read in a record of the provider;
   * unique within an environment.
   */
  id: usableId,
  /** Null if `type` has the form of neither generation. */
  generation: orNull(z.enum(['v2', 'v3'])),
  /** When it happened at the provider, in epoch milliseconds; not when it was delivered. */
  createdAt: z.int(),
  apiVersion: text,
}

const names = {
  productId: orNull(usableId),
  customerId: orNull(usableId),
  /** The merchant's own reference and metadata; text and number values of metadata are kept as text. */
  externalRef: text,
  customer: customerDetails,
  // Not a record: its output lacks `__proto__`, an ordinary key in merchants' data.
  metadata: z.custom<Record<string, string>>(
    (json) => isJsonObject(json) && Object.values(json).every((value) => typeof value === 'string'),
  ),
}

/**
 * The events by subject. Every field is declared here alone; the store writes them in this order, without nulls, so that
 * a new field must be nullable: events stored or exported before it have null there. Fields that only a newer version
 * knows are dropped.
 */
const SCHEMAS = {
  payment: z.object({
    ...facts,
    subject: z.literal('payment'),
    type: z.enum([...PAYMENT_EVENT_TYPES, PAYMENT_REPORTED]),
    paymentId: orNull(usableId),
    /** The subscription that the event names, if any. */
    subscriptionId: orNull(usableId),
    railProof: orNull(railProof),
    ...names,
  }),
  subscription: z.object({
    ...facts,
    subject: z.literal('subscription'),
    type: z.enum([...SUBSCRIPTION_EVENT_TYPES, SUBSCRIPTION_REPORTED]),
    subscriptionId: orNull(usableId),
    /** The payment that the event names, if any. */
    paymentId: orNull(usableId),
    /** The provider's own status word, lower case. */
    status: text,
    /** Null unless the event has both fields; a field with the value `null` counts as present. */
    cycles: orNull(z.object({ current: z.number().nullable(), total: z.number().nullable() })),
    cancelAtPeriodEnd: orNull(z.boolean()),
    /** The end of the paid period, in epoch milliseconds. */
    expiresAt: orNull(z.int()),
    ...names,
  }),
  customer: z.object({
    ...facts,
    subject: z.literal('customer'),
    type: z.enum(CUSTOMER_EVENT_TYPES),
    ...names,
  }),
  other: z.object({ ...facts, subject: z.literal('other'), type: z.string(), ...names }),
  manual: z.object({
    ...facts,
    // Any other id could take the place of a future event from the provider.
    id: usableId.startsWith(MANUAL_ID_PREFIX),
    generation: z.null().default(null),
    apiVersion: z.null().default(null),
    subject: z.literal('manual'),
    type: z.enum(MANUAL_EVENT_TYPES),
    /** The end of a grant, in epoch milliseconds; null: for good, and for every other type. */
    until: orNull(z.int()),
    /** Who made the change: an API key's name, or the system user. */
    actor: z.string(),
    reason: text,
    ...names,
    customerId: usableId,
  }),
}
type EventOf<Subject extends keyof typeof SCHEMAS> = Frozen<z.output<(typeof SCHEMAS)[Subject]>>

/** Read-only, and so are the objects in it. */
type Frozen<Value> = Value extends object ? { readonly [Name in keyof Value]: Frozen<Value[Name]> } : Value

/** The evidence in an event for its payment's rail; `strength` ranks it: method field, type, rail-only field. */
export type RailProof = Frozen<z.output<typeof railProof>>

/** Details of the person in an event; null where it has none. Personal data: never logged. */
export type CustomerDetails = Frozen<z.output<typeof customerDetails>>

/** A payment or checkout event. */
export type PaymentEvent = EventOf<'payment'>
export type SubscriptionEvent = EventOf<'subscription'>
export type CustomerEvent = EventOf<'customer'>
/** Authentic and stored, but without effect on access: payouts, payment methods, unknown types. */
export type OtherEvent = EventOf<'other'>
/**
 * A change that an operator made by hand to one customer. The provider does not know it: it has no generation, and the
 * identity that it links is in `customer`. Without a product: blocks that concern every one, and links.
 */
export type ManualEvent = EventOf<'manual'>

export type NormalizedEvent = PaymentEvent | SubscriptionEvent | CustomerEvent | OtherEvent | ManualEvent

const { manual, ...sent } = SCHEMAS
const sentEvent = z.discriminatedUnion('subject', [
  sent.payment,
  sent.subscription,
  sent.customer,
  sent.other,
])

const fieldsIn = (subject: keyof typeof SCHEMAS): readonly string[] => Object.keys(SCHEMAS[subject].shape)

/** The names of an event's fields, by subject, in the order of writing. */
export const EVENT_FIELDS: Readonly<Record<NormalizedEvent['subject'], readonly string[]>> = {
  payment: fieldsIn('payment'),
  subscription: fieldsIn('subscription'),
  customer: fieldsIn('customer'),
  other: fieldsIn('other'),
  manual: fieldsIn('manual'),
}

/**
 * Parses the normalised event of an export line; null if it can't be one.
 * @param isReport whether it is one that Latchkey reported, by an id that nobody else's event can have
 */
export function parseNormalizedEvent(json: unknown, isReport = false): NormalizedEvent | null {
  const { data } = sentEvent.safeParse(json)
  if (data === undefined || !(isReport ? isReportedEventId : isProviderEventId)(data.id)) return null
  const isTypeOfReport = data.type === PAYMENT_REPORTED || data.type === SUBSCRIPTION_REPORTED
  return isTypeOfReport && !isReport ? null : data
}

/** The change by hand in the bytes of an export line; null if there is none. */
export function parseManualEvent(body: Uint8Array): ManualEvent | null {
  try {
    const json: unknown = JSON.parse(Buffer.from(body).toString('utf8'))
    return manual.safeParse(json).data ?? null
  } catch {
    return null
  }
}

/** Why authentic bytes can't be used. They are kept, and a later version of the program may read them. */
export const QUARANTINE_TEXT = {
  not_utf8: 'cannot be used, since its bytes are not UTF-8 text',
  not_json: 'cannot be used, since its body is not JSON',
  not_an_object: 'cannot be used, since its body is not a JSON object',
  nested_too_deep: 'cannot be used, since its body is nested too deep',
  duplicate_keys: 'cannot be used, since its body has a key twice, and nobody knows which one counts',
  id_invalid: 'cannot be used, since it has no id that could be kept',
  created_at_invalid: 'cannot be used, since it does not say when it happened',
  created_at_in_future:
    'cannot be used, since it is dated further ahead of its receipt than its endpoint accepts',
  livemode_mismatch: 'cannot be used, since it is about another environment than its endpoint',
  reference_id_invalid: 'cannot be used, since an id that it names could not be kept',
  normalizer_failed: 'cannot be used, since reading it failed by a bug',
} as const
export type QuarantineReason = keyof typeof QUARANTINE_TEXT
export const QUARANTINE_REASONS = Object.keys(QUARANTINE_TEXT) as QuarantineReason[]

/** `id` is the event's own if it has a usable one. */
export type Normalized =
  | { readonly ok: true; readonly event: NormalizedEvent }
  | { readonly ok: false; readonly reason: QuarantineReason; readonly id: string | null }

/** Stored with every normalised event. Raise it when the same bytes would normalise differently. */
export const NORMALIZER_VERSION = 2
