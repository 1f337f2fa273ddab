import { z } from 'zod'
import { ofEach } from './accounts.js'
import { DETAIL_NAMES } from './customer.js'
import type { CustomerDetails, ManualEvent, NormalizedEvent } from './event.js'
import {
  CUSTOMER_EVENT_TYPES,
  MANUAL_EVENT_TYPES,
  PAYMENT_EVENT_TYPES,
  SUBSCRIPTION_EVENT_TYPES,
} from './event-types.js'
import { isUsableId } from './ids.js'

/** The prefix of the ids of all changes by hand. */
export const MANUAL_ID_PREFIX = 'man_'

/** Schemas of normalised events, for events that another program may have written. */

const usableId = z.string().refine(isUsableId)
const detail = z.string().nullable()

/** The fields that every event has; some kinds restrict them further. */
const eventFacts = {
  createdAt: z.int(),
  apiVersion: detail,
  customerId: usableId.nullable(),
  productId: usableId.nullable(),
  customer: z.strictObject(ofEach(DETAIL_NAMES, () => detail)) satisfies z.ZodType<CustomerDetails>,
  externalRef: detail,
  metadata: z.record(z.string(), z.string()),
}

const facts = {
  ...eventFacts,
  id: usableId.refine((id) => !id.startsWith(MANUAL_ID_PREFIX)),
  generation: z.enum(['v2', 'v3']).nullable(),
}

const paymentEvent = z.strictObject({
  ...facts,
  subject: z.literal('payment'),
  type: z.enum(PAYMENT_EVENT_TYPES),
  paymentId: usableId.nullable(),
  subscriptionId: usableId.nullable(),
  railProof: z.strictObject({ rail: z.enum(['card', 'crypto']), strength: z.literal([3, 2, 1]) }).nullable(),
})

const subscriptionEvent = z.strictObject({
  ...facts,
  subject: z.literal('subscription'),
  type: z.enum(SUBSCRIPTION_EVENT_TYPES),
  subscriptionId: usableId.nullable(),
  paymentId: usableId.nullable(),
  status: detail,
  cycles: z.strictObject({ current: z.number().nullable(), total: z.number().nullable() }).nullable(),
  cancelAtPeriodEnd: z.boolean().nullable(),
  expiresAt: z.int().nullable(),
})

const customerEvent = z.strictObject({
  ...facts,
  subject: z.literal('customer'),
  type: z.enum(CUSTOMER_EVENT_TYPES),
})

const otherEvent = z.strictObject({ ...facts, subject: z.literal('other'), type: z.string() })

const normalizedEvent = z.discriminatedUnion('subject', [
  paymentEvent,
  subscriptionEvent,
  customerEvent,
  otherEvent,
]) satisfies z.ZodType<NormalizedEvent>

/** Parses the normalised event of an export line; null if it can't be one. */
export function parseNormalizedEvent(json: unknown): NormalizedEvent | null {
  // Not the schema's output, which has another key order: events are compared as text.
  return normalizedEvent.safeParse(json).success ? (json as NormalizedEvent) : null
}

/** The complete stored form of a change by hand: only Latchkey writes it, so nothing is left open. */
const manualEvent = z.strictObject({
  ...eventFacts,
  // Any other id could take the place of a future event from the provider.
  id: usableId.startsWith(MANUAL_ID_PREFIX),
  generation: z.null(),
  apiVersion: z.null(),
  subject: z.literal('manual'),
  type: z.enum(MANUAL_EVENT_TYPES),
  customerId: usableId,
  until: z.int().nullable(),
  actor: z.string(),
  reason: detail,
}) satisfies z.ZodType<ManualEvent>

/** The change by hand in the bytes of an export line; null if there is none. */
export function parseManualEvent(body: Uint8Array): ManualEvent | null {
  try {
    const json: unknown = JSON.parse(Buffer.from(body).toString('utf8'))
    // Not the schema's output, which has another key order: events are compared as text.
    return manualEvent.safeParse(json).success ? (json as ManualEvent) : null
  } catch {
    return null
  }
}
