import { z } from 'zod'
import type { NormalizedEvent } from './event.js'
import { detail, eventFacts, usableId } from './event-form.js'
import { CUSTOMER_EVENT_TYPES, PAYMENT_EVENT_TYPES, SUBSCRIPTION_EVENT_TYPES } from './event-types.js'
import { MANUAL_ID_PREFIX } from './manual-event.js'

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
