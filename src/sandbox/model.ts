/* The service's own records, as the sandbox keeps them. Instants (…At) are epoch milliseconds, amounts are cents. */

export const DAY_MS = 24 * 60 * 60 * 1000

/** The words of a text, with one space between two. */
export type Words<Text extends string> = Text extends `${infer First} ${infer Rest}`
  ? First | Words<Rest>
  : Text

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

export const CURRENCIES = ['USD', 'EUR'] as const
export type Currency = (typeof CURRENCIES)[number]
export const CARD_METHODS = ['CARD', 'WALLET_A', 'WALLET_B'] as const
export type CardMethod = (typeof CARD_METHODS)[number]
export const METHODS = [...CARD_METHODS, 'CRYPTO'] as const
export type Method = (typeof METHODS)[number]
export type Generation = 'v3' | 'v2'

export const DECLINES = ['soft_decline', 'hard_decline', '3ds_failed', 'technical_failure'] as const
/** What a buyer's card does. `3ds_required` waits for the buyer at the checkout; off-session it succeeds. */
export const OUTCOMES = ['success', ...DECLINES, '3ds_required'] as const
export type Decline = (typeof DECLINES)[number]
export type Outcome = (typeof OUTCOMES)[number]
export type DeclineCategory = 'SOFT' | 'HARD'

/** Of what a new record does not have yet: nothing, which is a value of that type later. */
const none = <Value>(): Value | null => null

/** The merchant's own texts and objects of a checkout, given back as they came. */
export interface Context {
  readonly externalRef: string | null
  readonly successUrl: string | null
  readonly cancelUrl: string | null
  readonly metadata: Readonly<Record<string, unknown>> | null
}

interface Dated {
  readonly id: string
  readonly createdAt: number
  readonly updatedAt: number
}

export interface Product extends Dated {
  readonly name: string
  readonly description: string | null
  readonly imageUrl: string | null
  readonly status: 'ACTIVE' | 'PENDING' | 'ARCHIVED'
  readonly platform: 'WEB' | 'INVOICE' | 'COMMUNITY' | 'MESSENGER'
  readonly communityGuildId: string | null
  readonly communityRoleId: string | null
  readonly communityRemindersId: string | null
  readonly messengerGroupId: string | null
  readonly frequencyInDays: number | null
  /** Null where the price is given with each payment. */
  readonly priceCents: number | null
  readonly isCustomPrice: boolean
  readonly currency: Currency
  readonly supply: number | null
  readonly paymentMethods: readonly ('CARD' | 'CRYPTO')[]
  readonly acceptedChains: readonly number[]
  /** Symbols. */
  readonly acceptedAssets: readonly string[]
  /** Whether the price contains the VAT. */
  readonly taxInclusive: boolean
}

export const NEW_CUSTOMER = {
  communityId: none<string>(),
  messengerId: none<string>(),
  communityUsername: none<string>(),
  messengerUsername: none<string>(),
  deletedAt: none<number>(),
}
export interface Customer extends Dated, Readonly<typeof NEW_CUSTOMER> {
  readonly email: string
  readonly name: string | null
  readonly country: string | null
  /** What every charge of the saved card does. */
  readonly card: Outcome
}

export interface SavedMethod extends Dated {
  readonly customerId: string
  readonly type: CardMethod
  readonly last4: string
  readonly revokedAt: number | null
}

export const DEPOSIT_WARNINGS = [
  'INSUFFICIENT_DEPOSIT_AMOUNT',
  'RBF_DETECTED',
  'NETWORK_FEE_SURCHARGE',
] as const
export type DepositWarning = (typeof DEPOSIT_WARNINGS)[number]

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
  readonly warnings: readonly {
    readonly code: DepositWarning
    readonly message: string
    readonly data: object
  }[]
}

/** What a charge comes to. */
export interface Amounts {
  readonly grossAmountCents: number
  readonly vatAmountCents: number
  /** Null where no VAT applies. */
  readonly vatRateBps: number | null
  readonly platformFeeCents: number
  readonly merchantNetCents: number
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
  customFields: none<readonly object[]>(),
  customFieldsResponse: none<object>(),
}
export interface Payment extends Dated, Context, Amounts, Readonly<typeof NEW_PAYMENT> {
  readonly customerId: string | null
  readonly productId: string
  /** A `cycle` covers the first one, too. */
  readonly purpose: 'one_time' | 'cycle' | 'plan_change'
  readonly status: PaymentStatus
  readonly statusTimeline: readonly { readonly status: PaymentStatus; readonly at: number }[]
  readonly capture: 'automatic' | 'manual'
  readonly priceCents: number
  readonly currency: Currency
  readonly taxInclusive: boolean
  readonly expiresAt: number | null
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

/** Of a subscription whose first cycle is still to be paid. */
type Incomplete = 'INCOMPLETE' | 'PENDING_3DS' | 'PENDING_REDIRECT'

export const NEW_SUBSCRIPTION = {
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
}
export interface Subscription extends Dated, Context, Readonly<typeof NEW_SUBSCRIPTION> {
  readonly customerId: string | null
  readonly productId: string
  readonly status: Incomplete | 'ACTIVE' | 'PAST_DUE' | 'CANCELED' | 'EXPIRED'
  readonly totalCycles: number | null
  /** Every plan change, oldest first. */
  readonly changes: readonly ScheduledChange[]
}

export interface Endpoint extends Dated {
  readonly url: string
  readonly description: string
  readonly secret: string
  readonly generation: Generation
  readonly enabledEvents: readonly string[]
  readonly isActive: boolean
}

export interface CheckoutSession extends Dated {
  readonly token: string
  readonly paymentId: string
  readonly expiresAt: number
}

interface Discount extends Dated {
  readonly code: string
  readonly productId: string | null
  readonly percentOff: number | null
  readonly amountOffCents: number | null
}

/** The kept answer to a request with an idempotency key. */
export interface KeptAnswer extends Dated {
  readonly fingerprint: string
  readonly status: number
  readonly body: unknown
}

export interface Records {
  readonly product: Product
  readonly customer: Customer
  readonly method: SavedMethod
  readonly payment: Payment
  readonly subscription: Subscription
  readonly endpoint: Endpoint
  readonly session: CheckoutSession
  readonly discount: Discount
  readonly answer: KeptAnswer
  readonly delivery: Delivery
}
export type Kind = keyof Records
export type Entity = Records[Kind]

/** A payment or a subscription to which the clock alone will do something: what follows from its status then. */
export interface Due {
  readonly id: string
  readonly at: number
}

/** The real time of an attempt, not the sandbox's; its status is null where no answer came. */
export interface Attempt {
  readonly at: number
  readonly status: number | null
  readonly error: string | null
}

export const DELIVERY_STATUSES = ['delivered', 'failed', 'dropped', 'pending'] as const

/** One event on its way to one endpoint. */
export interface Delivery {
  readonly id: string
  readonly endpointId: string
  readonly eventId: string
  readonly type: string
  readonly body: string
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
  readonly attempts: readonly Attempt[]
}

/** Faults of delivery; chances are from 0 to 1. */
export interface DeliveryFaults {
  readonly drop: number
  readonly duplicate: number
  readonly damage: number
  readonly delayMs: number
  readonly reorder: boolean
  /** Null: every endpoint that has no faults of its own. */
  readonly endpoint: string | null
}

/** An answer on request: what no rule of the sandbox would raise, or a slow one. */
export interface AnswerFault {
  readonly code: string | null
  readonly operation: string | null
  readonly times: number
  readonly slowMs: number
}

/** What the sandbox knows beside its records. */
export interface Settings {
  readonly seed: number
  readonly now: number
  /** The instant of the last change: the next one is later. */
  readonly changedAt: number
  /** How many ids have been made. */
  readonly made: number
  readonly merchantOfRecord: boolean
  readonly faults: readonly DeliveryFaults[]
  readonly answers: readonly AnswerFault[]
}
