/* The service's own records, as the sandbox keeps them. Instants are epoch milliseconds, amounts are cents. */

export const DAY_MS = 24 * 60 * 60 * 1000

export const PAYMENT_STATUSES = [
  'PENDING',
  'AUTHORIZED',
  'PENDING_3DS',
  'PENDING_REDIRECT',
  'BRIDGING',
  'RECEIVED',
  'PARTIAL',
  'COMPLETED',
  'FAILED',
  'DECLINED',
  'REFUNDED',
  'PARTIALLY_REFUNDED',
  'CANCELED',
  'EXPIRED',
] as const
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number]

export type SubscriptionStatus =
  | 'INCOMPLETE'
  | 'PENDING_3DS'
  | 'PENDING_REDIRECT'
  | 'ACTIVE'
  | 'PAST_DUE'
  | 'CANCELED'
  | 'EXPIRED'

export const CURRENCIES = ['USD', 'EUR'] as const
export type Currency = (typeof CURRENCIES)[number]
export const CARD_METHODS = ['CARD', 'WALLET_A', 'WALLET_B'] as const
export const METHODS = [...CARD_METHODS, 'CRYPTO'] as const
export type Method = (typeof METHODS)[number]
export type Rail = 'card' | 'crypto'
export const PLATFORMS = ['WEB', 'INVOICE', 'COMMUNITY', 'MESSENGER'] as const
export type Platform = (typeof PLATFORMS)[number]
export type Generation = 'v3' | 'v2'

/** What a buyer's card does at a charge. */
export const OUTCOMES = [
  'success',
  'soft_decline',
  'hard_decline',
  '3ds_failed',
  'technical_failure',
] as const
/** `3ds_required` waits for the buyer, who accepts or fails at the checkout; off-session it succeeds. */
export const CARD_OUTCOMES = [...OUTCOMES, '3ds_required'] as const
export type Outcome = (typeof OUTCOMES)[number]
export type CardOutcome = (typeof CARD_OUTCOMES)[number]
export type DeclineCategory = 'SOFT' | 'HARD'

/** The merchant's own texts and objects of a checkout, given back as they came. */
export interface Context {
  readonly externalRef: string | null
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly successUrl: string | null
  readonly cancelUrl: string | null
}

interface Dated {
  readonly id: string
  readonly createdAt: number
  readonly updatedAt: number
}

export interface Product extends Dated {
  readonly name: string
  readonly description: string | null
  readonly status: 'ACTIVE' | 'PENDING' | 'ARCHIVED'
  readonly platform: Platform
  readonly frequencyInDays: number | null
  /** Null where the buyer's price is given with each payment. */
  readonly priceCents: number | null
  readonly isCustomPrice: boolean
  readonly currency: Currency
  readonly supply: number | null
  readonly imageUrl: string | null
  readonly paymentMethods: readonly ('CARD' | 'CRYPTO')[]
  readonly chains: readonly number[]
  /** Symbols. */
  readonly assets: readonly string[]
  /** Whether the price contains the VAT. */
  readonly taxInclusive: boolean
  readonly communityGuildId: string | null
  readonly communityRoleId: string | null
  readonly communityRemindersId: string | null
  readonly messengerGroupId: string | null
}

export interface Customer extends Dated {
  readonly email: string
  readonly name: string | null
  /** Two letters, for VAT. */
  readonly country: string | null
  readonly communityId: string | null
  readonly messengerId: string | null
  readonly communityUsername: string | null
  readonly messengerUsername: string | null
  /** What every charge of the saved card does. */
  readonly card: CardOutcome
  readonly deletedAt: number | null
}

export interface SavedMethod extends Dated {
  readonly customerId: string
  readonly type: (typeof CARD_METHODS)[number]
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
  readonly observed: number | null
  readonly detectedAt: number | null
  readonly warnings: readonly {
    readonly code: DepositWarning
    readonly message: string
    readonly data: object
  }[]
  readonly txHash: string | null
}
export const DEPOSIT_WARNINGS = [
  'INSUFFICIENT_DEPOSIT_AMOUNT',
  'RBF_DETECTED',
  'NETWORK_FEE_SURCHARGE',
] as const
export type DepositWarning = (typeof DEPOSIT_WARNINGS)[number]

/** What a charge comes to, with VAT and the service's fee. */
export interface Amounts {
  readonly grossCents: number
  readonly vatCents: number
  /** Null: no VAT applies. */
  readonly vatBps: number | null
  readonly feeCents: number
  readonly netCents: number
}

export interface Payment extends Dated, Context, Amounts {
  readonly customerId: string | null
  readonly productId: string
  readonly subscriptionId: string | null
  /** What the payment is for; a `cycle` covers the first one, too. */
  readonly purpose: 'one_time' | 'cycle' | 'plan_change'
  /** When it paid its cycle; null for other payments, and before. */
  readonly cyclePaidAt: number | null
  readonly status: PaymentStatus
  /** Null until the buyer has chosen. */
  readonly method: Method | null
  readonly capture: 'automatic' | 'manual'
  readonly priceCents: number
  readonly currency: Currency
  readonly taxInclusive: boolean
  readonly declineCode: string | null
  readonly declineCategory: DeclineCategory | null
  readonly refundedCents: number
  readonly refundedAt: number | null
  readonly chargebackAt: number | null
  readonly canceledAt: number | null
  readonly cancelReason: string | null
  readonly deposit: Deposit | null
  readonly receivedAt: number | null
  readonly settledAt: number | null
  readonly expiresAt: number | null
  readonly sessionId: string | null
  readonly customFields: readonly object[] | null
  readonly customFieldsResponse: object | null
  readonly timeline: readonly { readonly status: PaymentStatus; readonly at: number }[]
}

export interface ScheduledChange {
  readonly id: string
  readonly type: 'UPGRADE' | 'DOWNGRADE'
  readonly fromProductId: string
  readonly targetProductId: string
  readonly scheduledFor: number
  /** The upgrade's charge; null: none. */
  readonly paymentId: string | null
  /** Whether the billing cycle begins anew with the change. */
  readonly resetsAnchor: boolean
  readonly appliedAt: number | null
  readonly canceledAt: number | null
}

export interface Subscription extends Dated, Context {
  readonly customerId: string | null
  readonly productId: string
  readonly status: SubscriptionStatus
  /** Of the newest payment that paid a cycle; null before the first. */
  readonly rail: Rail | null
  readonly currentCycle: number
  readonly totalCycles: number | null
  readonly cancelAtPeriodEnd: boolean
  readonly periodStart: number | null
  readonly dueAt: number | null
  readonly renewalAttempt: number
  readonly nextRenewalAttemptAt: number | null
  readonly lastDeclineCategory: DeclineCategory | null
  /** The payment of the cycle that is due; null while none is. */
  readonly renewalPaymentId: string | null
  /** Every plan change, oldest first. */
  readonly changes: readonly ScheduledChange[]
  readonly endedAt: number | null
}

export interface Endpoint extends Dated {
  readonly generation: Generation
  readonly url: string
  readonly description: string
  readonly enabledEvents: readonly string[]
  readonly isActive: boolean
  readonly secret: string
}

export interface CheckoutSession extends Dated {
  readonly token: string
  readonly paymentId: string
  readonly subscriptionId: string | null
  readonly expiresAt: number
}

export interface SetupIntent extends Dated {
  readonly customerId: string
  readonly status: 'SUCCEEDED' | 'FAILED'
  readonly methodId: string | null
}

export interface Discount extends Dated {
  readonly code: string
  readonly percentOff: number | null
  readonly amountOffCents: number | null
  readonly productId: string | null
}

/** The kept answer to a request with an idempotency key; its id is the key. */
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
  readonly intent: SetupIntent
  readonly discount: Discount
  readonly answer: KeptAnswer
}
export type Kind = keyof Records
export type Entity = Records[Kind]

/** What falls due by the clock alone, each at most once for its record. */
export const DUE_KINDS = [
  'payment.expire',
  'payment.confirm',
  'payment.bridge',
  'subscription.due',
  'subscription.retry',
  'subscription.grace',
] as const
export type DueKind = (typeof DUE_KINDS)[number]

export interface Due {
  readonly kind: DueKind
  readonly id: string
  readonly at: number
}

export interface Attempt {
  /** The real time, not the sandbox's. */
  readonly at: number
  /** The receiver's answer; null: none came. */
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
  readonly createdAt: number
  readonly body: string
  readonly status: (typeof DELIVERY_STATUSES)[number]
  /** The sandbox's time from which it may be sent. */
  readonly dueAt: number
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

/** An answer on request: what no rule of the sandbox would raise. */
export interface AnswerFault {
  readonly code: string | null
  /** `POST /v3/payments`; null: any operation of the documents. */
  readonly operation: string | null
  readonly times: number
  /** Real milliseconds before the request is worked on. */
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
