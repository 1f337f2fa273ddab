/* The service's own records, as the sandbox keeps them. Instants (…At) are epoch milliseconds, amounts are cents. */

export const DAY_MS = 24 * 60 * 60 * 1000

/** The words of a text, with one space between two. */
export type Words<Text extends string> = Text extends `${infer First} ${infer Rest}`
  ? First | Words<Rest>
  : Text
type Fields<Text extends string, Value> = { readonly [Name in Words<Text>]: Value }
type Texts<Text extends string> = Fields<Text, string | null>
type Instants<Text extends string> = Fields<Text, number | null>

const words = <const Text extends string>(text: Text) =>
  text.split(' ') as readonly string[] as readonly Words<Text>[]

export const PAYMENT_STATUSES = words(
  'PENDING AUTHORIZED PENDING_3DS PENDING_REDIRECT BRIDGING RECEIVED PARTIAL COMPLETED FAILED DECLINED REFUNDED PARTIALLY_REFUNDED CANCELED EXPIRED',
)
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number]
export type SubscriptionStatus =
  Words<'INCOMPLETE PENDING_3DS PENDING_REDIRECT ACTIVE PAST_DUE CANCELED EXPIRED'>

export const CURRENCIES = ['USD', 'EUR'] as const
export type Currency = (typeof CURRENCIES)[number]
export const CARD_METHODS = ['CARD', 'WALLET_A', 'WALLET_B'] as const
export const METHODS = [...CARD_METHODS, 'CRYPTO'] as const
export type Method = (typeof METHODS)[number]
export type CardMethod = (typeof CARD_METHODS)[number]
export type Generation = 'v3' | 'v2'

/** What a buyer's card does. `3ds_required` waits for the buyer at the checkout; off-session it succeeds. */
export const OUTCOMES = words('success soft_decline hard_decline 3ds_failed technical_failure 3ds_required')
export type Outcome = (typeof OUTCOMES)[number]
export type DeclineCategory = 'SOFT' | 'HARD'

/** The merchant's own texts and objects of a checkout, given back as they came. */
export interface Context extends Texts<'externalRef successUrl cancelUrl'> {
  readonly metadata: Readonly<Record<string, unknown>> | null
}

interface Dated extends Fields<'createdAt updatedAt', number> {
  readonly id: string
}

export interface Product
  extends Dated,
    Texts<'description imageUrl communityGuildId communityRoleId communityRemindersId messengerGroupId'> {
  readonly name: string
  readonly status: 'ACTIVE' | 'PENDING' | 'ARCHIVED'
  readonly platform: 'WEB' | 'INVOICE' | 'COMMUNITY' | 'MESSENGER'
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

export interface Customer
  extends Dated,
    Texts<'name country communityId messengerId communityUsername messengerUsername'>,
    Instants<'deletedAt'> {
  readonly email: string
  /** What every charge of the saved card does. */
  readonly card: Outcome
}

export interface SavedMethod extends Dated, Fields<'customerId last4', string>, Instants<'revokedAt'> {
  readonly type: CardMethod
}

/** Token amounts are in the smallest unit, as text. */
export interface Deposit
  extends Fields<'symbol expected received', string>,
    Instants<'detectedAt'>,
    Texts<'txHash'> {
  readonly chainId: number
  readonly mode: 'DIRECT' | 'AUTOSWAP'
  readonly observed: number | null
  readonly warnings: readonly {
    readonly code: DepositWarning
    readonly message: string
    readonly data: object
  }[]
}
export const DEPOSIT_WARNINGS = words('INSUFFICIENT_DEPOSIT_AMOUNT RBF_DETECTED NETWORK_FEE_SURCHARGE')
export type DepositWarning = (typeof DEPOSIT_WARNINGS)[number]

/** What a charge comes to. The rate is null where no VAT applies. */
export interface Amounts
  extends Fields<'grossAmountCents vatAmountCents platformFeeCents merchantNetCents', number> {
  readonly vatRateBps: number | null
}

export interface Payment
  extends Dated,
    Context,
    Amounts,
    Texts<'customerId subscriptionId declineCode cancelReason sessionId'>,
    Instants<'refundedAt chargebackAt canceledAt paymentReceivedAt paymentSettledAt expiresAt'>,
    Fields<'priceCents refundedAmountCents', number> {
  readonly productId: string
  /** A `cycle` covers the first one, too. */
  readonly purpose: 'one_time' | 'cycle' | 'plan_change'
  readonly status: PaymentStatus
  /** Null until the buyer has chosen. */
  readonly method: Method | null
  readonly capture: 'automatic' | 'manual'
  readonly currency: Currency
  readonly taxInclusive: boolean
  readonly declineCategory: DeclineCategory | null
  readonly deposit: Deposit | null
  readonly customFields: readonly object[] | null
  readonly customFieldsResponse: object | null
  readonly statusTimeline: readonly { readonly status: PaymentStatus; readonly at: number }[]
}

export interface ScheduledChange
  extends Fields<'id fromProductId targetPriceId', string>,
    Instants<'appliedAt canceledAt'> {
  readonly type: 'UPGRADE' | 'DOWNGRADE'
  readonly scheduledFor: number
  /** The upgrade's charge; null: none. */
  readonly paymentId: string | null
  /** Whether the billing cycle begins anew with the change. */
  readonly resetsAnchor: boolean
}

export interface Subscription
  extends Dated,
    Context,
    Texts<'customerId renewalPaymentId'>,
    Instants<'periodStart currentCycleDueAt nextRenewalAttemptAt endedAt'>,
    Fields<'currentCycle renewalAttempt', number> {
  readonly productId: string
  readonly status: SubscriptionStatus
  /** How the newest cycle was paid; null before the first. */
  readonly rail: 'card' | 'crypto' | null
  readonly totalCycles: number | null
  readonly cancelAtPeriodEnd: boolean
  readonly lastDeclineCategory: DeclineCategory | null
  /** Every plan change, oldest first. */
  readonly changes: readonly ScheduledChange[]
}

export interface Endpoint extends Dated, Fields<'url description secret', string> {
  readonly generation: Generation
  readonly enabledEvents: readonly string[]
  readonly isActive: boolean
}

export interface CheckoutSession extends Dated, Fields<'token paymentId', string> {
  readonly expiresAt: number
}

interface Discount
  extends Dated,
    Texts<'code productId'>,
    Fields<'percentOff amountOffCents', number | null> {}

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
}
export type Kind = keyof Records
export type Entity = Records[Kind]

/** What falls due by the clock alone, each at most once for its record. */
export interface Due {
  readonly kind: DueKind
  readonly id: string
  readonly at: number
}
export type DueKind =
  | `payment.${'expire' | 'confirm' | 'bridge'}`
  | `subscription.${'due' | 'retry' | 'grace'}`

/** The real time of an attempt, not the sandbox's; its status is null where no answer came. */
export interface Attempt {
  readonly at: number
  readonly status: number | null
  readonly error: string | null
}

export const DELIVERY_STATUSES = words('delivered failed dropped pending')

/** One event on its way to one endpoint. */
export interface Delivery extends Fields<'id endpointId eventId type body', string> {
  readonly createdAt: number
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
export interface DeliveryFaults extends Fields<'drop duplicate damage delayMs', number> {
  readonly reorder: boolean
  /** Null: every endpoint that has no faults of its own. */
  readonly endpoint: string | null
}

/** An answer on request: what no rule of the sandbox would raise, or a slow one. */
export interface AnswerFault extends Texts<'code operation'>, Fields<'times slowMs', number> {}

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
