import { z } from 'zod'
import type { CustomerDetails, ManualEvent, NormalizedEvent } from './event.js'
import {
  CUSTOMER_EVENT_TYPES,
  MANUAL_EVENT_TYPES,
  PAYMENT_EVENT_TYPES,
  SUBSCRIPTION_EVENT_TYPES,
} from './event-types.js'
import { isUsableId } from './ids.js'

/** With what the ids of all that is done by hand begin. */
export const MANUAL_ID_PREFIX = 'man_'

/** The parts of an event in the one vocabulary, for reading it where somebody else may have written it. */

const usableId = z.string().refine(isUsableId)
const detail = z.string().nullable()

/** What every event tells, but for what each kind restricts further. */
const eventFacts = {
  createdAt: z.int(),
  apiVersion: detail,
  customerId: usableId.nullable(),
  productId: usableId.nullable(),
  customer: z.strictObject({
    email: detail,
    name: detail,
    communityId: detail,
    communityUsername: detail,
    messengerId: detail,
    messengerUsername: detail,
  }) satisfies z.ZodType<CustomerDetails>,
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

const toldEvent = z.discriminatedUnion('subject', [
  paymentEvent,
  subscriptionEvent,
  customerEvent,
  otherEvent,
]) satisfies z.ZodType<NormalizedEvent>

/** What a delivery was read as, as an export tells it; null where it is nothing that one could have been. */
export function parseToldEvent(told: unknown): NormalizedEvent | null {
  // Not what the schema makes of it, whose order is another: events are compared as text.
  return toldEvent.safeParse(told).success ? (told as NormalizedEvent) : null
}

/** What was done by hand as it is stored, all of it: nobody else ever wrote one, so that nothing is left open. */
const manualEvent = z.strictObject({
  ...eventFacts,
  // Any other could take the place of a provider's event that is still to come.
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

/** The event by hand that these bytes hold, as an export has it; null where they hold none. */
export function parseManualEvent(body: Uint8Array): ManualEvent | null {
  try {
    const told: unknown = JSON.parse(Buffer.from(body).toString('utf8'))
    // Not what the schema makes of it, whose order is another: events are compared as text.
    return manualEvent.safeParse(told).success ? (told as ManualEvent) : null
  } catch {
    return null
  }
}
