/* The service's own records, as the sandbox keeps them. Instants (…At) are epoch milliseconds, amounts are cents. */

import { z } from 'zod'
import { orNull } from '../provider/event.js'
import type { CardMethod, CONTEXT, DISCOUNT, Method, PRODUCT, PURCHASE } from '../provider/requests.js'
import { COUNTRY, EMAIL, NAME, TEXT, WEBHOOK_ENDPOINT } from '../provider/requests.js'
import { isServiceCode } from '../provider/service-codes.js'

export const DAY_MS = 24 * 60 * 60 * 1000
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS }
export const DURATION_MS = z
  .string()
  .regex(/^\d{1,6}[smhd]$/, 'must be a duration such as 90s, 15m, 2h or 30d')
  .transform((text) => Number.parseInt(text, 10) * (UNIT_MS[text.slice(-1)] ?? 0))

const CHARGED = ['AUTHORIZED', 'FAILED', 'DECLINED', 'CANCELED'] as const
const PAID_OR_NOT = ['PENDING_3DS', 'PENDING_REDIRECT', ...CHARGED, 'PARTIAL', 'RECEIVED'] as const

/** Every legal move of a payment. A failed one may be paid again until its deadline. */
export const PAYMENT_MOVES = {
  PENDING: [...PAID_OR_NOT, 'EXPIRED'],
  AUTHORIZED: ['COMPLETED', 'FAILED', 'CANCELED'],
  PENDING_3DS: [...CHARGED, 'EXPIRED'],
  PENDING_REDIRECT: ['PENDING_3DS', 'AUTHORIZED', 'FAILED', 'DECLINED'],
  BRIDGING: ['COMPLETED', 'FAILED'],
  RECEIVED: ['BRIDGING', 'COMPLETED', 'FAILED'],
  PARTIAL: ['RECEIVED', 'FAILED', 'CANCELED', 'EXPIRED'],
  COMPLETED: ['PARTIALLY_REFUNDED', 'REFUNDED'],
  FAILED: PAID_OR_NOT,
  DECLINED: PAID_OR_NOT,
  REFUNDED: [],
  PARTIALLY_REFUNDED: ['PARTIALLY_REFUNDED', 'REFUNDED'],
  CANCELED: [],
  EXPIRED: [],
} as const
export type PaymentStatus = keyof typeof PAYMENT_MOVES
export const PAYMENT_STATUSES = Object.keys(PAYMENT_MOVES)

const DECLINES = ['soft_decline', 'hard_decline', '3ds_failed', 'technical_failure'] as const
/** What a buyer's card does. `3ds_required` waits for the buyer at the checkout; off-session it succeeds. */
export const OUTCOMES = ['success', ...DECLINES, '3ds_required'] as const
export type Outcome = (typeof OUTCOMES)[number]
export type Decline = (typeof DECLINES)[number]
export type DeclineCategory = 'SOFT' | 'HARD'

/** Of what a new record does not have yet: nothing, which is a value of that type later. */
const none = <Value>(): Value | null => null

interface Stored {
  readonly id: string
  /** Its place in lists of its kind; missing until it is in the file. */
  readonly seq?: number
}

interface Dated extends Stored {
  readonly createdAt: number
  readonly updatedAt: number
}

export interface Product extends Dated, Readonly<z.output<typeof PRODUCT>> {
  readonly acceptedAssets: string[]
  readonly acceptedChains: number[]
  readonly status: 'ACTIVE' | 'PENDING' | 'ARCHIVED'
}

export const CUSTOMER = z.object({
  email: EMAIL,
  name: orNull(NAME.max(200)),
  country: orNull(COUNTRY),
  communityId: orNull(TEXT),
  messengerId: orNull(TEXT),
  communityUsername: orNull(TEXT),
  messengerUsername: orNull(TEXT),
})
export interface Customer extends Dated, Readonly<z.output<typeof CUSTOMER>> {
  readonly deletedAt: number | null
  /** What every charge of the saved card does. */
  readonly card: Outcome
}

export interface SavedMethod extends Dated {
  readonly customerId: string
  readonly type: CardMethod
  readonly last4: string
  readonly revokedAt: number | null
}

/** Token amounts are in the smallest unit, as text. */
export interface Deposit {
  readonly chainId: number
  readonly symbol: string
  readonly mode: 'DIRECT' | 'AUTOSWAP'
  readonly expected: string
  readonly received: string
  /** Confirmations. */
  readonly observed: number | null
  readonly detectedAt: number | null
  readonly txHash: string | null
  readonly warnings: readonly { code: string; message: string; data: object }[]
}

export const NEW_PAYMENT = {
  subscriptionId: none<string>(),
  sessionId: none<string>(),
  /** Null until the buyer has chosen. */
  method: none<Method>(),
  deposit: none<Deposit>(),
  declineCode: none<string>(),
  declineCategory: none<DeclineCategory>(),
  refundedAmountCents: 0,
  refundedAt: none<number>(),
  chargebackAt: none<number>(),
  canceledAt: none<number>(),
  cancelReason: none<string>(),
  paymentReceivedAt: none<number>(),
  paymentSettledAt: none<number>(),
  customFields: none<NonNullable<z.output<typeof PURCHASE>['customFields']>>(),
  customFieldsResponse: none<object>(),
  status: 'PENDING' as PaymentStatus,
  capture: 'automatic' as 'automatic' | 'manual',
}
export type Context = Readonly<z.output<typeof CONTEXT>>
export interface Payment extends Dated, Context, Readonly<typeof NEW_PAYMENT> {
  readonly customerId: string | null
  readonly productId: string
  /** A `cycle` covers the first one, too. */
  readonly purpose: 'one_time' | 'cycle' | 'plan_change'
  readonly statusTimeline: readonly { readonly status: PaymentStatus; readonly at: number }[]
  readonly priceCents: number
  readonly currency: Product['currency']
  readonly taxInclusive: boolean
  readonly expiresAt: number | null
  /** When the clock alone will do something to it: what follows from its status then. */
  readonly dueAt: number | null
  readonly grossAmountCents: number
  readonly vatAmountCents: number
  /** Null where no VAT applies. */
  readonly vatRateBps: number | null
  readonly platformFeeCents: number
  readonly merchantNetCents: number
}

export interface ScheduledChange {
  readonly id: string
  readonly type: 'UPGRADE' | 'DOWNGRADE'
  readonly targetPriceId: string
  readonly scheduledFor: number
  /** The upgrade's charge; null: none. */
  readonly paymentId: string | null
  /** Whether the billing cycle starts over with the change. */
  readonly resetsAnchor: boolean
  readonly appliedAt: number | null
  readonly canceledAt: number | null
}

/** Until its first cycle is paid, a subscription shows the status of that payment where it waits for the buyer. */
type SubscriptionStatus =
  | ('INCOMPLETE' | 'PENDING_3DS' | 'PENDING_REDIRECT')
  | ('ACTIVE' | 'PAST_DUE' | 'CANCELED' | 'EXPIRED')

export const NEW_SUBSCRIPTION = {
  status: 'INCOMPLETE' as SubscriptionStatus,
  /** When the clock alone will do something to it: what follows from its status then. */
  dueAt: none<number>(),
  /** How the newest cycle was paid; null before the first. */
  rail: none<'card' | 'crypto'>(),
  currentCycle: 0,
  cancelAtPeriodEnd: false,
  periodStart: none<number>(),
  currentCycleDueAt: none<number>(),
  renewalAttempt: 0,
  renewalPaymentId: none<string>(),
  nextRenewalAttemptAt: none<number>(),
  lastDeclineCategory: none<DeclineCategory>(),
  endedAt: none<number>(),
  /** Every plan change, oldest first. */
  changes: [] as readonly ScheduledChange[],
}
export interface Subscription extends Dated, Context, Readonly<typeof NEW_SUBSCRIPTION> {
  readonly customerId: string | null
  readonly productId: string
  readonly totalCycles: number | null
}

export const ENDPOINT = WEBHOOK_ENDPOINT.extend({
  /** Which events it hears: v2 has its address in the dashboard, which a sandbox lacks. */
  generation: z.enum(['v3', 'v2']).default('v3'),
  /** One that the receiver knows already; left out: a fresh one. */
  secret: TEXT.optional(),
})
export interface Endpoint extends Dated, Readonly<z.output<typeof ENDPOINT>> {
  readonly secret: string
}

/** The kept answer to a request with an idempotency key. */
export interface KeptAnswer extends Stored {
  readonly fingerprint: string
  readonly status: number
  readonly body: unknown
  readonly createdAt: number
}

export const DELIVERY_STATUSES = ['delivered', 'failed', 'dropped', 'pending'] as const

/** One event on its way to one endpoint. */
export interface Delivery extends Stored {
  readonly endpointId: string
  readonly eventId: string
  readonly type: string
  readonly event: string
  readonly createdAt: number
  readonly status: (typeof DELIVERY_STATUSES)[number]
  /** The sandbox's time from which it may be sent. */
  readonly dueAt: number
  /** Where it comes among those that wait, by the sandbox's time. */
  readonly place: number
  /** How many bursts of attempts have failed. */
  readonly failures: number
  readonly isDoubled: boolean
  readonly isDamaged: boolean
  /** The real time of each, not the sandbox's; its status is null where no answer came. */
  readonly attempts: readonly { at: number; status: number | null; error: string | null }[]
}

export interface Records {
  readonly product: Product
  readonly customer: Customer
  readonly method: SavedMethod
  readonly payment: Payment
  readonly subscription: Subscription
  readonly endpoint: Endpoint
  readonly discount: Dated & z.output<typeof DISCOUNT>
  readonly answer: KeptAnswer
  readonly delivery: Delivery
}
export type Kind = keyof Records
export type Entity = Records[Kind]

const CHANCE = z.number().min(0).max(1).default(0)

/** Faults of delivery; chances are from 0 to 1. */
const DELIVERY_FAULTS = z.object({
  drop: CHANCE,
  duplicate: CHANCE,
  damage: CHANCE,
  delay: DURATION_MS.default(0),
  reorder: z.boolean().default(false),
  /** Null: every endpoint that has no faults of its own. */
  endpoint: orNull(TEXT),
})
/** An answer on request: what no rule of the sandbox would raise, or a slow one. */
const ANSWER_FAULT = z.object({
  code: orNull(z.string().refine(isServiceCode, 'is not a documented code')),
  operation: orNull(z.string().max(255)),
  times: z.int().min(1).max(1_000_000).default(1),
  slowMs: z.int().min(0).max(60_000).default(0),
})
export const FAULTS = DELIVERY_FAULTS.extend({ answers: z.array(ANSWER_FAULT).optional() })

/** What the sandbox knows beside its records. */
export interface Settings {
  readonly seed: number
  readonly now: number
  /** The instant of the last change: the next one is later. */
  readonly changedAt: number
  readonly made: number
  readonly merchantOfRecord: boolean
  readonly faults: readonly z.output<typeof DELIVERY_FAULTS>[]
  readonly answers: readonly z.output<typeof ANSWER_FAULT>[]
}
