/*
 * What the documented operations take. The documents show few requests of v3: the others have the fields of v2, with
 * how it is paid in groups. What they show of neither has what it needs, by names that the documents have elsewhere.
 */

import { z } from 'zod'
import { orNull } from './event.js'
import { MAX_REFERENCE_LENGTH } from './facts.js'
import { parseInstant } from './instant.js'

export const KEY_HEADER = 'X-Service-Api-Key'
export const MAX_IDEMPOTENCY_KEY_LENGTH = 255
/** The most that a page of a list has. */
export const MAX_PAGE_SIZE = { v3: 100, v2: 25 } as const

export const CURRENCIES = ['USD', 'EUR'] as const
export type Currency = (typeof CURRENCIES)[number]
export const CARD_METHODS = ['CARD', 'WALLET_A', 'WALLET_B'] as const
export type CardMethod = (typeof CARD_METHODS)[number]
export const METHODS = [...CARD_METHODS, 'CRYPTO'] as const
export type Method = (typeof METHODS)[number]

export const TEXT = z.string().min(1).max(255)
const WEB_URL = z.url({ protocol: /^https?$/ })
export const EMAIL = z.email().max(255)
export const COUNTRY = z.string().regex(/^[A-Z]{2}$/, 'must be two capital letters')
/** One line of text, without control characters. */
export const NAME = z.string().regex(/^\P{Cc}*$/u, 'must not contain control characters')
const PRICE = z.string().regex(/^[1-9]\d{0,9}$/, 'must be a positive integer as text, in cents')
export const RAILS = z.array(z.enum(['CARD', 'CRYPTO']))

/** Read into epoch milliseconds. */
export const INSTANT = z.string().transform((text, context) => {
  const instant = parseInstant(text)
  if (instant !== null) return instant
  context.addIssue({ code: 'custom', message: 'must be an ISO 8601 time' })
  return z.NEVER
})

export const PRODUCT = z.object({
  name: NAME.min(1).max(100),
  description: orNull(z.string().max(500)),
  /** In cents. Null where the price is given with each payment. */
  priceCents: orNull(PRICE.transform(Number)),
  isCustomPrice: z.boolean().default(false),
  currency: z.enum(CURRENCIES),
  paymentMethods: RAILS.min(1),
  /** Null: it is bought once. */
  frequencyInDays: orNull(z.int().min(1).max(3650)),
  platform: z.enum(['WEB', 'INVOICE', 'COMMUNITY', 'MESSENGER']).default('WEB'),
  /** Symbols; left out: all. */
  acceptedAssets: z.array(z.string().max(20).toUpperCase()).optional(),
  acceptedChains: z.array(z.int()).optional(),
  supply: orNull(z.int().min(1)),
  imageUrl: orNull(WEB_URL),
  /** Whether the price contains the VAT. */
  taxInclusive: z.boolean().default(true),
  communityGuildId: orNull(TEXT),
  communityRoleId: orNull(TEXT),
  communityRemindersId: orNull(TEXT),
  messengerGroupId: orNull(z.string().regex(/^-\d{1,20}$/, 'must be a negative number as text')),
})

/** The merchant's own texts and objects of a checkout, given back as they came. */
export const CONTEXT = z.object({
  externalRef: orNull(z.string().max(MAX_REFERENCE_LENGTH)),
  metadata: orNull(z.record(z.string(), z.unknown())),
  successUrl: orNull(WEB_URL),
  cancelUrl: orNull(WEB_URL),
})

const CUSTOM_FIELD = z.object({
  key: TEXT,
  label: z.string().max(255),
  type: TEXT,
  required: z.boolean().optional(),
  placeholder: z.string().max(255).optional(),
  options: z.array(z.object({ value: z.string(), label: z.string() })).optional(),
  validation: z.object({ regex: z.string().optional(), errorMessage: z.string().optional() }).optional(),
})

export const PURCHASE = CONTEXT.extend({
  productId: TEXT,
  customerId: TEXT.optional(),
  customerEmail: EMAIL.optional(),
  customerFirstName: NAME.max(100).optional(),
  customerLastName: NAME.max(100).optional(),
  /** Where the buyer is billed, for VAT. */
  customerCountry: COUNTRY.optional(),
  priceCents: PRICE.optional(),
  currency: z.enum(CURRENCIES).optional(),
  /** What the merchant asks the buyer at the checkout. */
  customFields: orNull(z.array(CUSTOM_FIELD).max(10)),
  expiresAt: INSTANT.optional(),
})

/** How often a subscription is paid; left out: until somebody ends it. */
export const SUBSCRIPTION = PURCHASE.extend({ totalCycles: orNull(z.int().min(1).max(1000)) })

export const SESSION = PURCHASE.extend({
  mode: z.enum(['payment', 'subscription']).optional(),
  paymentMethods: RAILS.optional(),
  expiresInMinutes: z.int().min(1).max(1440).default(60),
})

export const CARD = z.object({ tokenizedInstrument: TEXT })
export const CRYPTO = z.object({ chainId: z.int().optional(), assetId: z.string().max(20).optional() })
export type CryptoChoice = Readonly<z.output<typeof CRYPTO>>

/** How a v3 request says what it pays with. */
export const INSTRUMENT = z.object({
  method: z.enum(METHODS).optional(),
  card: CARD.partial()
    .extend({ capture: z.enum(['automatic', 'manual']).default('automatic') })
    .optional(),
  crypto: CRYPTO.extend({ mode: z.enum(['DIRECT', 'AUTOSWAP']).default('DIRECT') }).optional(),
})

export const SETUP_INTENT = z.object({
  customerId: TEXT,
  method: z.enum(CARD_METHODS).default('CARD'),
  card: CARD.optional(),
})

const REASON = orNull(z.string().max(1000))
export const CANCEL_CHECKOUT = z.object({ reason: REASON })
export type CancelCheckout = Readonly<z.output<typeof CANCEL_CHECKOUT>>
export const REFUND = z.object({
  /** Left out: all that is left. */
  amountInCents: z.int().min(1).optional(),
  reason: REASON,
  idempotencyKey: z.string().min(1).max(MAX_IDEMPOTENCY_KEY_LENGTH).optional(),
})
export type Refund = Readonly<z.output<typeof REFUND>>

export const CANCELLATION = z.object({ atPeriodEnd: z.boolean().default(false) })
export type Cancellation = Readonly<z.output<typeof CANCELLATION>>
export const PLAN_CHANGE = z.object({
  productId: TEXT,
  effective: z.enum(['auto', 'now', 'period_end']).default('auto'),
  proration: z.enum(['delta', 'none']).default('delta'),
  useCustomerPaymentMethod: z.boolean().default(true),
  method: z.enum(CARD_METHODS).optional(),
  card: CARD.optional(),
  successUrl: orNull(WEB_URL),
  cancelUrl: orNull(WEB_URL),
})
export type PlanChange = Readonly<z.output<typeof PLAN_CHANGE>>
export const CANCEL_CHANGE = z.object({ scheduledChangeId: TEXT.optional() })
export type CancelChange = Readonly<z.output<typeof CANCEL_CHANGE>>

export const WEBHOOK_ENDPOINT = z.object({
  url: WEB_URL,
  description: z.string().max(500).default(''),
  /** Empty: all events. */
  enabledEvents: z.array(z.string()).readonly().default([]),
  isActive: z.boolean().default(true),
})
export type WebhookEndpointChange = Readonly<Partial<z.input<typeof WEBHOOK_ENDPOINT>>>

export const DISCOUNT = z
  .object({
    code: z.string().regex(/^[\w-]{1,50}$/, 'must be 1 to 50 letters, digits, - or _'),
    percentOff: orNull(z.int().min(1).max(100)),
    amountOffCents: orNull(z.int().min(1)),
    productId: orNull(TEXT),
  })
  .refine(({ percentOff, amountOffCents }) => (percentOff === null) !== (amountOffCents === null), {
    path: ['percentOff'],
    message: 'send either percentOff or amountOffCents',
  })
