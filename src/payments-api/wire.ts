/*
 * What the service answers with. Documented fields that a backfill needs are required, all others are optional, and
 * unknown ones are kept.
 */

import { z } from 'zod'
import { isUsableId } from '../provider/ids.js'
import { parseInstant } from '../provider/instant.js'

const idSchema = z.string().refine(isUsableId, 'is not an id')
/** As written: ISO 8601. */
const instantSchema = z.string().refine((text) => parseInstant(text) !== null, 'is not an ISO 8601 time')
const optionalText = z.string().nullish()
const optionalInstant = instantSchema.nullish()

// The envelope

export const successSchema = z
  .looseObject({ success: z.literal(true), data: z.unknown() })
  .refine((envelope) => 'data' in envelope)

/** `error` is a code; in one place of the documents it is an object with code and message. */
export const failureSchema = z.looseObject({
  success: z.literal(false),
  error: z.union([z.string(), z.looseObject({ code: z.string(), message: optionalText })]),
  message: optionalText,
  data: z.unknown().optional(),
})

export const fieldErrorsSchema = z.looseObject({
  fieldErrors: z.array(z.looseObject({ field: z.string(), message: z.string() })),
})

export const cursorPageSchema = z.looseObject({
  items: z.array(z.unknown()),
  pagination: z.looseObject({ nextCursor: z.string().min(1).nullable(), hasMore: z.boolean() }),
})

export const numberedPageSchema = z.looseObject({
  data: z.array(z.unknown()),
  pagination: z.looseObject({ page: z.int(), totalPages: z.int().min(0) }),
})

// v3

export const scheduledChangeSchema = z.looseObject({
  id: idSchema,
  type: z.string(),
  targetPriceId: z.string().nullable(),
  scheduledFor: instantSchema,
  appliedAt: instantSchema.nullable(),
  canceledAt: instantSchema.nullable(),
})
export type ScheduledChange = Readonly<z.output<typeof scheduledChangeSchema>>

export const subscriptionSchema = z.looseObject({
  id: idSchema,
  customerId: idSchema,
  productId: idSchema,
  /** Upper case, such as `PAST_DUE`; there may be others than the documented ones. */
  status: z.string(),
  currentCycle: z.int(),
  totalCycles: z.int().nullable(),
  cancelAtPeriodEnd: z.boolean(),
  currentCycleDueAt: instantSchema.nullable(),
  createdAt: instantSchema,
  updatedAt: instantSchema,
  trialEndAt: optionalInstant,
  renewalAttempt: z.int().nullish(),
  nextRenewalAttemptAt: optionalInstant,
  lastDeclineCategory: optionalText,
  externalRef: optionalText,
  /** Only where one subscription is asked for, and a change is pending. */
  scheduledChange: scheduledChangeSchema.nullish(),
})
export type Subscription = Readonly<z.output<typeof subscriptionSchema>>

export const paymentSchema = z.looseObject({
  id: idSchema,
  customerId: idSchema.nullable(),
  productId: idSchema.nullable(),
  subscriptionId: idSchema.nullable(),
  /** Upper case, such as `COMPLETED`; there may be others than the documented ones. */
  status: z.string(),
  /** Oldest first; empty for old payments. */
  statusTimeline: z.array(z.looseObject({ status: z.string(), at: instantSchema })),
  createdAt: instantSchema,
  updatedAt: instantSchema,
  declineCode: optionalText,
  declineCategory: optionalText,
  refundedAmountCents: z.int().nullish(),
  refundedAt: optionalInstant,
  paymentReceivedAt: optionalInstant,
  paymentSettledAt: optionalInstant,
  expiresAt: optionalInstant,
  externalRef: optionalText,
})
export type Payment = Readonly<z.output<typeof paymentSchema>>

/** The documents show no field of a customer. */
export const customerSchema = z.looseObject({ id: idSchema, email: optionalText, name: optionalText })
export type Customer = Readonly<z.output<typeof customerSchema>>

export const webhookEndpointSchema = z.looseObject({
  id: idSchema,
  url: z.string(),
  /** Empty: all events. */
  enabledEvents: z.array(z.string()),
  isActive: z.boolean(),
  description: optionalText,
  apiVersion: optionalText,
  createdAt: optionalInstant,
  updatedAt: optionalInstant,
})
export type WebhookEndpoint = Readonly<z.output<typeof webhookEndpointSchema>>

/** What creating one answers with: the only time that its secret is shown, but for a rotation. */
export const newWebhookEndpointSchema = z.looseObject({ id: idSchema, secret: z.string().min(1) })
export type NewWebhookEndpoint = Readonly<z.output<typeof newWebhookEndpointSchema>>

export const rotatedSecretSchema = z.looseObject({ secret: z.string().min(1) })
export type RotatedSecret = Readonly<z.output<typeof rotatedSecretSchema>>

// v2

export const legacyPaymentSchema = z.looseObject({
  id: idSchema,
  status: z.string(),
  subscriptionId: optionalText,
  productId: optionalText,
  customerEmail: optionalText,
  externalRef: optionalText,
  isSandbox: z.boolean().nullish(),
  createdAt: optionalInstant,
})
export type LegacyPayment = Readonly<z.output<typeof legacyPaymentSchema>>
