/* One payment, from the intent to its end, by card and by crypto. What follows for a subscription is not its business. */

import { ServiceError } from './codes.js'
import { type PaymentOccurrence, tellFailedPayout, tellPayment, tellSettled } from './events.js'
import type {
  Context,
  Currency,
  Customer,
  DeclineCategory,
  Deposit,
  Method,
  Outcome,
  Payment,
  PaymentStatus,
  Product,
} from './model.js'
import {
  amountsOf,
  assetOf,
  CHAINS,
  DEFAULT_CHAIN,
  inUsCents,
  LEAST_CRYPTO_CENTS,
  tokenAmount,
} from './pricing.js'
import type { World } from './world.js'

/** Without a checkout session's own window. */
export const CARD_WINDOW_MS = 30 * 60_000

const AFTER_FAILURE: readonly PaymentStatus[] = [
  ...(['PENDING_3DS', 'PENDING_REDIRECT', 'AUTHORIZED', 'PARTIAL', 'RECEIVED'] as const),
  ...(['FAILED', 'DECLINED', 'CANCELED'] as const),
]

/** Every legal move. A failed payment may be paid again until its deadline. */
export const MOVES: Readonly<Record<PaymentStatus, readonly PaymentStatus[]>> = {
  PENDING: [...AFTER_FAILURE, 'EXPIRED'],
  PENDING_3DS: ['AUTHORIZED', 'FAILED', 'DECLINED', 'CANCELED', 'EXPIRED'],
  PENDING_REDIRECT: ['PENDING_3DS', 'AUTHORIZED', 'FAILED', 'DECLINED'],
  AUTHORIZED: ['COMPLETED', 'FAILED', 'CANCELED'],
  PARTIAL: ['RECEIVED', 'FAILED', 'CANCELED', 'EXPIRED'],
  RECEIVED: ['BRIDGING', 'COMPLETED', 'FAILED'],
  BRIDGING: ['COMPLETED', 'FAILED'],
  COMPLETED: ['PARTIALLY_REFUNDED', 'REFUNDED'],
  PARTIALLY_REFUNDED: ['PARTIALLY_REFUNDED', 'REFUNDED'],
  FAILED: AFTER_FAILURE,
  DECLINED: AFTER_FAILURE,
  REFUNDED: [],
  CANCELED: [],
  EXPIRED: [],
}

/** @throws {ServiceError} `INVALID_PAYMENT_STATUS_TRANSITION` */
export function moved(
  payment: Payment,
  status: PaymentStatus,
  at: number,
  change: Partial<Payment> = {},
): Payment {
  if (!MOVES[payment.status].includes(status)) {
    const message = `The payment ${payment.id} is ${payment.status}: it can't become ${status}.`
    throw new ServiceError('INVALID_PAYMENT_STATUS_TRANSITION', message)
  }
  return {
    ...payment,
    ...change,
    status,
    updatedAt: at,
    statusTimeline: [...payment.statusTimeline, { status, at }],
  }
}

export function move(
  world: World,
  payment: Payment,
  status: PaymentStatus,
  change: Partial<Payment> = {},
): Payment {
  return world.put('payment', moved(payment, status, world.tick(), change))
}

export interface PaymentSpec {
  readonly product: Product
  readonly customer: Customer | undefined
  readonly subscriptionId?: string
  readonly purpose: Payment['purpose']
  readonly priceCents: number
  readonly currency?: Currency
  readonly context: Context
  readonly capture?: Payment['capture']
  /** Null: none. Left out: the window of its rail. */
  readonly expiresAt?: number | null | undefined
  readonly sessionId?: string
  readonly customFields?: readonly object[] | null
}

export function createPayment(world: World, spec: PaymentSpec): Payment {
  const { product, customer, priceCents } = spec
  const at = world.tick()
  const { merchantOfRecord } = world.settings
  const { taxInclusive } = product
  const amounts = amountsOf({
    priceCents,
    taxInclusive,
    country: customer?.country ?? null,
    merchantOfRecord,
  })
  const expiresAt = spec.expiresAt === undefined ? at + CARD_WINDOW_MS : spec.expiresAt
  const payment: Payment = {
    id: world.makeId('pay'),
    customerId: customer?.id ?? null,
    productId: product.id,
    subscriptionId: spec.subscriptionId ?? null,
    purpose: spec.purpose,
    status: 'PENDING',
    method: null,
    capture: spec.capture ?? 'automatic',
    priceCents,
    currency: spec.currency ?? product.currency,
    taxInclusive,
    ...amounts,
    declineCode: null,
    declineCategory: null,
    refundedAmountCents: 0,
    refundedAt: null,
    chargebackAt: null,
    canceledAt: null,
    cancelReason: null,
    deposit: null,
    paymentReceivedAt: null,
    paymentSettledAt: null,
    expiresAt,
    sessionId: spec.sessionId ?? null,
    customFields: spec.customFields ?? null,
    customFieldsResponse: null,
    ...spec.context,
    statusTimeline: [{ status: 'PENDING', at }],
    createdAt: at,
    updatedAt: at,
  }
  if (expiresAt !== null) world.schedule('payment.expire', payment.id, expiresAt)
  return world.put('payment', payment)
}

/** What a buyer can still pay. */
export function isPayable({ status, expiresAt }: Payment, now: number): boolean {
  const waits = ['PENDING', 'PENDING_3DS', 'PENDING_REDIRECT', 'PARTIAL', 'FAILED', 'DECLINED'].includes(
    status,
  )
  return waits && (expiresAt === null || now < expiresAt)
}

export interface CryptoChoice {
  readonly mode?: Deposit['mode'] | undefined
  readonly chainId?: number | undefined
  readonly assetId?: string | undefined
}

/**
 * Notes how the buyer pays; for crypto, quotes the deposit. The first choice begins the checkout.
 * @throws {ServiceError} `CHECKOUT_METHOD_NOT_AVAILABLE`, `CRYPTO_ASSET_NOT_ACCEPTED`, `CRYPTO_PAYMENT_BELOW_MIN`
 */
export function chooseMethod(
  world: World,
  payment: Payment,
  method: Method,
  crypto: CryptoChoice = {},
): Payment {
  const product = world.find('product', payment.productId)
  const kind = method === 'CRYPTO' ? 'CRYPTO' : 'CARD'
  if (product !== undefined && !product.paymentMethods.includes(kind)) {
    throw new ServiceError(
      'CHECKOUT_METHOD_NOT_AVAILABLE',
      `The product ${product.id} does not take ${kind}.`,
    )
  }
  if (payment.method === method && (method !== 'CRYPTO' || crypto.chainId === undefined)) return payment
  const isFirst = payment.method === null
  const deposit = method === 'CRYPTO' ? quote(payment, product, crypto) : null
  const hasCardWindow = payment.expiresAt === payment.createdAt + CARD_WINDOW_MS
  const expiresAt =
    deposit && hasCardWindow ? payment.createdAt + windowOf(deposit.chainId) : payment.expiresAt
  const chosen = world.put('payment', { ...payment, method, deposit, expiresAt, updatedAt: world.tick() })
  if (expiresAt !== null && expiresAt !== payment.expiresAt)
    world.schedule('payment.expire', payment.id, expiresAt)
  if (isFirst) tellPayment(world, 'checkout.initiated', chosen)
  return chosen
}

function quote(payment: Payment, product: Product | undefined, crypto: CryptoChoice): Deposit {
  const { acceptedChains: chains = [], acceptedAssets: assets = [] } = product ?? {}
  const preferred = chains.includes(DEFAULT_CHAIN) ? DEFAULT_CHAIN : (chains[0] ?? DEFAULT_CHAIN)
  const chainId = crypto.chainId ?? preferred
  const offered = assets.filter((symbol) => assetOf(chainId, symbol) !== undefined)
  const symbol = crypto.assetId?.toUpperCase() ?? offered[0] ?? ''
  if (!chains.includes(chainId) || !offered.includes(symbol)) {
    throw new ServiceError(
      'CRYPTO_ASSET_NOT_ACCEPTED',
      `The product does not take ${symbol} on chain ${chainId}.`,
    )
  }
  const { grossAmountCents, currency } = payment
  if (inUsCents(grossAmountCents, currency) < LEAST_CRYPTO_CENTS) {
    const message = `A crypto payment is at least ${LEAST_CRYPTO_CENTS} US cents.`
    throw new ServiceError('CRYPTO_PAYMENT_BELOW_MIN', message)
  }
  return {
    ...{ chainId, symbol, mode: crypto.mode ?? 'DIRECT' },
    expected: tokenAmount(grossAmountCents, currency, chainId, symbol),
    received: '0',
    ...{ observed: null, detectedAt: null, warnings: [], txHash: null },
  }
}

const windowOf = (chainId: number): number => CHAINS[chainId]?.windowMs ?? CARD_WINDOW_MS

/** Whether the buyer is there: a renewal is charged off-session. */
type Presence = 'present' | 'absent'

const DECLINES: Readonly<
  Record<'soft_decline' | 'hard_decline' | '3ds_failed', readonly [string, DeclineCategory]>
> = {
  soft_decline: ['insufficient_funds', 'SOFT'],
  hard_decline: ['stolen_card', 'HARD'],
  '3ds_failed': ['authentication_failed', 'SOFT'],
}

/** Charges a card whose method is chosen. Afterwards the payment is paid, declined, failed, or waits for 3DS. */
export function chargeCard(world: World, payment: Payment, outcome: Outcome, presence: Presence): Payment {
  const isWallet = presence === 'present' && payment.method !== 'CARD' && payment.status !== 'PENDING_3DS'
  const asked =
    isWallet && payment.status !== 'PENDING_REDIRECT' ? move(world, payment, 'PENDING_REDIRECT') : payment
  switch (outcome) {
    case 'success':
      return authorize(world, asked, presence)
    case '3ds_required':
      return presence === 'absent' ? authorize(world, asked, presence) : move(world, asked, 'PENDING_3DS')
    case '3ds_failed': {
      const challenged =
        presence === 'absent' || asked.status === 'PENDING_3DS' ? asked : move(world, asked, 'PENDING_3DS')
      return fail(world, challenged, DECLINES[outcome], presence)
    }
    case 'soft_decline':
    case 'hard_decline':
      return fail(world, asked, DECLINES[outcome], presence)
    case 'technical_failure':
      return fail(world, asked, null, presence)
    default:
      return outcome satisfies never
  }
}

function authorize(world: World, payment: Payment, presence: Presence): Payment {
  const clear = { declineCode: null, declineCategory: null }
  const authorized = move(world, payment, 'AUTHORIZED', clear)
  tellPayment(world, presence === 'present' ? 'payment.authorized' : 'renewal.authorized', authorized)
  if (authorized.sessionId !== null) tellPayment(world, 'checkout.succeeded', authorized)
  return authorized.capture === 'manual' ? authorized : complete(world, authorized)
}

/** @param decline null: a technical failure */
function fail(
  world: World,
  payment: Payment,
  decline: readonly [string, DeclineCategory] | null,
  presence: Presence,
): Payment {
  const isCheckout = presence === 'present' && payment.deposit === null && payment.status !== 'AUTHORIZED'
  const [declineCode, declineCategory] = decline ?? [null, null]
  const failed = move(world, payment, decline === null ? 'FAILED' : 'DECLINED', {
    declineCode,
    declineCategory,
  })
  const occurrence: PaymentOccurrence = isCheckout ? 'checkout.failed' : 'payment.failed'
  tellPayment(world, occurrence, failed)
  return failed
}

/** Captured, or confirmed and settled on-chain. */
export function complete(world: World, payment: Payment): Payment {
  const isCrypto = payment.deposit !== null
  const paid = move(world, payment, 'COMPLETED', {
    paymentReceivedAt: payment.paymentReceivedAt ?? world.now,
    ...(isCrypto && { paymentSettledAt: world.now }),
  })
  world.unschedule('payment.expire', paid.id)
  tellPayment(world, 'payment.succeeded', paid)
  tellPayment(world, 'payment.completed', paid)
  if (isCrypto && paid.sessionId !== null) tellPayment(world, 'checkout.succeeded', paid)
  return paid
}

/** A failure after the buyer has authorized the payment, or of a deposit. */
export function failTechnically(world: World, payment: Payment): Payment {
  return fail(world, payment, null, 'present')
}

/** @throws {ServiceError} `PAYMENT_NOT_CAPTURABLE` */
export function capture(world: World, payment: Payment): Payment {
  if (payment.status === 'AUTHORIZED') return complete(world, payment)
  throw new ServiceError('PAYMENT_NOT_CAPTURABLE', `The payment is ${payment.status}, not AUTHORIZED.`)
}

/** @throws {ServiceError} `PAYMENT_NOT_VOIDABLE` */
export function voidPayment(world: World, payment: Payment): Payment {
  if (payment.status !== 'AUTHORIZED') {
    throw new ServiceError('PAYMENT_NOT_VOIDABLE', `The payment is ${payment.status}, not AUTHORIZED.`)
  }
  const voided = move(world, payment, 'CANCELED', { canceledAt: world.now })
  tellPayment(world, 'payment.canceled', voided)
  return voided
}

/** Calls an unpaid checkout off; a canceled one stays as it is. @throws {ServiceError} `PAYMENT_NOT_CANCELABLE` */
export function cancelCheckout(world: World, payment: Payment, reason: string | null): Payment {
  if (payment.status === 'CANCELED') return payment
  if (
    !['PENDING', 'PENDING_3DS', 'PENDING_REDIRECT', 'PARTIAL', 'FAILED', 'DECLINED'].includes(payment.status)
  ) {
    throw new ServiceError(
      'PAYMENT_NOT_CANCELABLE',
      `The payment is ${payment.status}: it can't be canceled.`,
    )
  }
  const canceled = withdraw(world, payment, reason)
  tellPayment(world, 'checkout.canceled', canceled)
  return canceled
}

/** The same without telling anyone: what it would have paid for is gone. */
export function withdraw(world: World, payment: Payment, reason: string | null): Payment {
  world.unschedule('payment.expire', payment.id)
  const canceled = move(world, payment, 'CANCELED', { cancelReason: reason })
  return world.put('payment', { ...canceled, canceledAt: world.now })
}

export function isRefundable({ status, deposit, chargebackAt }: Payment): boolean {
  return (
    (status === 'COMPLETED' || status === 'PARTIALLY_REFUNDED') && deposit === null && chargebackAt === null
  )
}

/** @param amountInCents null: all that is left. @throws {ServiceError} `PAYMENT_NOT_REFUNDABLE` */
export function refund(world: World, payment: Payment, amountInCents: number | null): Payment {
  if (!isRefundable(payment)) {
    const why = payment.deposit === null ? `it is ${payment.status}` : 'only card payments are'
    throw new ServiceError('PAYMENT_NOT_REFUNDABLE', `The payment can't be refunded: ${why}.`)
  }
  const left = payment.grossAmountCents - payment.refundedAmountCents
  const amount = amountInCents ?? left
  if (amount > left) {
    throw new ServiceError('PAYMENT_NOT_REFUNDABLE', `Only ${left} cents are left to refund.`, {
      data: { left },
    })
  }
  const status = amount === left ? 'REFUNDED' : 'PARTIALLY_REFUNDED'
  const refundedAmountCents = payment.refundedAmountCents + amount
  const moment = moved(payment, status, world.tick(), { refundedAmountCents, refundedAt: world.now })
  const refunded = world.put('payment', moment)
  tellPayment(world, status === 'REFUNDED' ? 'payment.refunded' : 'payment.partially_refunded', refunded)
  return refunded
}

/** @throws {ServiceError} `INVALID_PAYMENT_STATUS_TRANSITION` for what no bank could charge back */
export function chargeBack(world: World, payment: Payment): Payment {
  if (!isRefundable(payment)) {
    throw new ServiceError(
      'INVALID_PAYMENT_STATUS_TRANSITION',
      'Only a paid card payment can be charged back.',
    )
  }
  const at = world.tick()
  const disputed = world.put('payment', { ...payment, chargebackAt: at, updatedAt: at })
  tellPayment(world, 'payment.chargeback', disputed)
  return disputed
}

/** Pays a card payment out to the merchant; crypto settles on-chain by itself. */
export function settle(world: World, payment: Payment, outcome: 'success' | 'failed'): Payment {
  const isPaid =
    payment.paymentReceivedAt !== null && payment.deposit === null && payment.paymentSettledAt === null
  if (!isPaid || !isRefundable(payment)) {
    throw new ServiceError(
      'INVALID_PAYMENT_STATUS_TRANSITION',
      'Only a paid card payment that is not yet settled can be.',
    )
  }
  if (outcome === 'failed') {
    tellFailedPayout(world, payment)
    return payment
  }
  const at = world.tick()
  const settled = world.put('payment', { ...payment, paymentSettledAt: at, updatedAt: at })
  tellSettled(world, settled)
  return settled
}

/** The sweep over intents: one that nobody finished stops being payable. Nothing is told. */
export function expire(world: World, payment: Payment): Payment {
  const isUnfinished = ['PENDING', 'PENDING_3DS', 'PENDING_REDIRECT', 'PARTIAL'].includes(payment.status)
  return isUnfinished ? move(world, payment, 'EXPIRED') : payment
}
