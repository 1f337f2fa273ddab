/* One payment, from the intent to its end, by card and by crypto. What follows for a subscription is not its business. */

import { z } from 'zod'
import type { Method } from '../provider/requests.js'
import type { ServiceCode } from '../provider/service-codes.js'
import { refuse } from './codes.js'
import { type PaymentOccurrence, tellPayment, tellPayout } from './events.js'
import type { Context, Customer, Decline, DeclineCategory, Deposit, Payment, Product } from './model.js'
import { NEW_PAYMENT, OUTCOMES, type Outcome, PAYMENT_MOVES, type PaymentStatus } from './model.js'
import type { CryptoChoice } from './pricing.js'
import { amountsOf, CARD_WINDOW_MS, CHAINS, quote, vatRateIn, WINDOW_MS } from './pricing.js'
import type { Change, World } from './world.js'

const UNFINISHED: readonly PaymentStatus[] = ['PENDING', 'PENDING_3DS', 'PENDING_REDIRECT', 'PARTIAL']
const UNPAID: readonly PaymentStatus[] = [...UNFINISHED, 'FAILED', 'DECLINED']

/** Moves a payment on, and tells of it. @throws {ServiceError} `INVALID_PAYMENT_STATUS_TRANSITION` */
export function move(
  world: World,
  payment: Payment,
  status: PaymentStatus,
  change: Change<Payment> = {},
  ...occurrences: readonly PaymentOccurrence[]
): Payment {
  const moves: readonly PaymentStatus[] = PAYMENT_MOVES[payment.status]
  if (!moves.includes(status)) {
    const message = `The payment ${payment.id} is ${payment.status}: it can't become ${status}.`
    refuse('INVALID_PAYMENT_STATUS_TRANSITION', message)
  }
  const dueAt = UNFINISHED.includes(status) ? payment.expiresAt : null
  const moved = world.update('payment', payment, (at) => {
    const statusTimeline = [...payment.statusTimeline, { status, at }]
    return { status, statusTimeline, dueAt, ...(typeof change === 'function' ? change(at) : change) }
  })
  for (const occurrence of occurrences) tellPayment(world, occurrence, moved)
  return moved
}

export interface PaymentSpec
  extends Pick<Payment, 'purpose' | 'priceCents'>,
    Partial<Pick<Payment, 'subscriptionId' | 'currency' | 'capture' | 'customFields'>> {
  readonly product: Product
  readonly customer: Customer | undefined
  readonly context: Context
  /** Whether a checkout session is for it. */
  readonly hasSession?: boolean
  /** Null: never. Left out: after the window of its rail. */
  readonly expiresAt?: number | null | undefined
}

export function createPayment(world: World, spec: PaymentSpec): Payment {
  const { product, customer, context, expiresAt, hasSession, ...given } = spec
  const { currency, taxInclusive } = product
  // Where the service is not merchant of record, VAT is the merchant's own business.
  const vatRateBps = world.settings.merchantOfRecord ? vatRateIn(customer?.country ?? null) : null
  const dated = world.fresh('pay')
  const { createdAt: at } = dated
  const deadline = expiresAt === undefined ? at + CARD_WINDOW_MS : expiresAt
  return world.put('payment', {
    ...dated,
    ...NEW_PAYMENT,
    sessionId: hasSession ? dated.id.replace('pay_', 'cs_') : null,
    customerId: customer?.id ?? null,
    productId: product.id,
    currency,
    taxInclusive,
    ...context,
    ...given,
    ...amountsOf(spec.priceCents, taxInclusive, vatRateBps),
    statusTimeline: [{ status: 'PENDING', at }],
    expiresAt: deadline,
    dueAt: deadline,
  })
}

export const isPayable = ({ status, expiresAt }: Payment, now: number): boolean =>
  UNPAID.includes(status) && (expiresAt === null || now < expiresAt)

/**
 * Notes how the buyer pays; for crypto, quotes the deposit. The first choice begins the checkout.
 * @throws {ServiceError} `CHECKOUT_METHOD_NOT_AVAILABLE`, `CRYPTO_ASSET_NOT_ACCEPTED`, `CRYPTO_PAYMENT_BELOW_MIN`
 */
export function chooseMethod(world: World, payment: Payment, method: Method, crypto: CryptoChoice = {}) {
  const product = world.find('product', payment.productId)
  const rail = method === 'CRYPTO' ? 'CRYPTO' : 'CARD'
  if (product?.paymentMethods.includes(rail) === false) {
    refuse('CHECKOUT_METHOD_NOT_AVAILABLE', `The product ${product.id} does not take ${rail}.`)
  }
  if (payment.method === method && (method !== 'CRYPTO' || crypto.chainId === undefined)) return payment
  const deposit = method === 'CRYPTO' ? quote(payment, product, crypto) : null
  const { createdAt } = payment
  const hasCardWindow = payment.expiresAt === createdAt + CARD_WINDOW_MS
  const window = deposit && hasCardWindow ? WINDOW_MS[deposit.chainId] : undefined
  const expiresAt = window === undefined ? payment.expiresAt : createdAt + window
  const chosen = world.update('payment', payment, { method, deposit, expiresAt, dueAt: expiresAt })
  if (payment.method === null) tellPayment(world, 'checkout.initiated', chosen)
  return chosen
}

/** Whether the buyer is there: a renewal is charged off-session. */
type Presence = 'present' | 'absent'

const tokenOf = (outcome: Outcome): string => (outcome === '3ds_required' ? 'tok_3ds' : `tok_${outcome}`)
/** Any other token is a card that works. */
export const outcomeOf = (token: string): Outcome =>
  OUTCOMES.find((outcome) => tokenOf(outcome) === token) ?? 'success'

/** Charges a card whose method is chosen. Afterwards the payment is paid, declined, failed, or waits for 3DS. */
export function chargeCard(world: World, payment: Payment, outcome: Outcome, presence: Presence): Payment {
  let asked = payment
  if (presence === 'present') {
    const isAtWallet = payment.status === 'PENDING_REDIRECT' || payment.status === 'PENDING_3DS'
    if (payment.method !== 'CARD' && !isAtWallet) asked = move(world, asked, 'PENDING_REDIRECT')
    if (outcome === '3ds_required') return move(world, asked, 'PENDING_3DS')
    if (outcome === '3ds_failed' && asked.status !== 'PENDING_3DS') asked = move(world, asked, 'PENDING_3DS')
  }
  if (outcome !== 'success' && outcome !== '3ds_required') return fail(world, asked, outcome, presence)
  const cleared = { declineCode: null, declineCategory: null }
  const told = presence === 'present' ? 'payment.authorized' : 'renewal.authorized'
  const authorized = move(world, asked, 'AUTHORIZED', cleared, told)
  if (authorized.sessionId !== null) tellPayment(world, 'checkout.succeeded', authorized)
  return authorized.capture === 'manual' ? authorized : complete(world, authorized)
}

/** Null: a failure that is nobody's decision. */
const DECLINED: Readonly<Record<Decline, readonly [code: string, category: DeclineCategory] | null>> = {
  soft_decline: ['insufficient_funds', 'SOFT'],
  hard_decline: ['stolen_card', 'HARD'],
  '3ds_failed': ['authentication_failed', 'SOFT'],
  technical_failure: null,
}

/** What fails before a present buyer has authorized it fails at the checkout. */
export function fail(world: World, payment: Payment, decline: Decline, presence: Presence): Payment {
  const isCheckout = presence === 'present' && payment.deposit === null && payment.status !== 'AUTHORIZED'
  const told = isCheckout ? 'checkout.failed' : 'payment.failed'
  const [declineCode, declineCategory] = DECLINED[decline] ?? [null, null]
  const status = declineCode === null ? 'FAILED' : 'DECLINED'
  return move(world, payment, status, { declineCode, declineCategory }, told)
}

/** @throws {ServiceError} `code`, with everything made staying on record */
export function assertNotDeclined(payment: Payment, code: ServiceCode): Payment {
  const { status, id: paymentId, grossAmountCents, declineCode, declineCategory } = payment
  if (status !== 'DECLINED' && status !== 'FAILED') return payment
  const data = { paymentId, declineCode, declineCategory }
  return refuse(code, `The charge of ${grossAmountCents} cents was declined.`, { data, keepsChanges: true })
}

/** Captured, or confirmed and settled on-chain. */
export function complete(world: World, payment: Payment): Payment {
  const { now } = world
  const isCrypto = payment.deposit !== null
  const settled = isCrypto && { paymentSettledAt: now }
  const times = { paymentReceivedAt: payment.paymentReceivedAt ?? now, ...settled }
  const paid = move(world, payment, 'COMPLETED', times, 'payment.succeeded', 'payment.completed')
  if (isCrypto && paid.sessionId !== null) tellPayment(world, 'checkout.succeeded', paid)
  return paid
}

/** @throws {ServiceError} `PAYMENT_NOT_CAPTURABLE` */
export function capture(world: World, payment: Payment): Payment {
  if (payment.status === 'AUTHORIZED') return complete(world, payment)
  return refuse('PAYMENT_NOT_CAPTURABLE', `The payment is ${payment.status}, not AUTHORIZED.`)
}

/** @throws {ServiceError} `PAYMENT_NOT_VOIDABLE` */
export function voidPayment(world: World, payment: Payment): Payment {
  if (payment.status !== 'AUTHORIZED') {
    refuse('PAYMENT_NOT_VOIDABLE', `The payment is ${payment.status}, not AUTHORIZED.`)
  }
  return move(world, payment, 'CANCELED', { canceledAt: world.now }, 'payment.canceled')
}

/** Calls an unpaid checkout off; a canceled one stays as it is. @throws {ServiceError} `PAYMENT_NOT_CANCELABLE` */
export function cancelCheckout(world: World, payment: Payment, reason: string | null): Payment {
  if (payment.status === 'CANCELED') return payment
  if (!UNPAID.includes(payment.status)) {
    refuse('PAYMENT_NOT_CANCELABLE', `The payment is ${payment.status}: it can't be canceled.`)
  }
  return tellPayment(world, 'checkout.canceled', withdraw(world, payment, reason))
}

/** The same without telling anyone: what it would have paid for is gone. */
export const withdraw = (world: World, payment: Payment, cancelReason: string | null): Payment =>
  move(world, payment, 'CANCELED', (at) => ({ cancelReason, canceledAt: at }))

/** Paid by card, and not all of it is refunded or charged back. */
function isHeld({ status, deposit, chargebackAt }: Payment): boolean {
  const isPaid = status === 'COMPLETED' || status === 'PARTIALLY_REFUNDED'
  return isPaid && deposit === null && chargebackAt === null
}

type Part = { readonly amountInCents?: number | null | undefined }

/** Refunds so much, or all that is left. @throws {ServiceError} `PAYMENT_NOT_REFUNDABLE` */
export function refund(world: World, payment: Payment, { amountInCents }: Part): Payment {
  if (!isHeld(payment)) {
    const why = payment.deposit === null ? `it is ${payment.status}` : 'only card payments are'
    refuse('PAYMENT_NOT_REFUNDABLE', `The payment can't be refunded: ${why}.`)
  }
  const left = payment.grossAmountCents - payment.refundedAmountCents
  const amount = amountInCents ?? left
  if (amount > left) {
    refuse('PAYMENT_NOT_REFUNDABLE', `Only ${left} cents are left to refund.`, { data: { left } })
  }
  const refundedAmountCents = payment.refundedAmountCents + amount
  const change = (at: number) => ({ refundedAmountCents, refundedAt: at })
  return amount === left
    ? move(world, payment, 'REFUNDED', change, 'payment.refunded')
    : move(world, payment, 'PARTIALLY_REFUNDED', change, 'payment.partially_refunded')
}

/** @throws {ServiceError} `INVALID_PAYMENT_STATUS_TRANSITION` for what no bank could charge back */
export function chargeBack(world: World, payment: Payment): Payment {
  if (!isHeld(payment)) {
    refuse('INVALID_PAYMENT_STATUS_TRANSITION', 'Only a paid card payment can be charged back.')
  }
  const disputed = world.update('payment', payment, (at) => ({ chargebackAt: at }))
  return tellPayment(world, 'payment.chargeback', disputed)
}

/** Pays a card payment out to the merchant; crypto settles on-chain by itself. */
export function settle(world: World, payment: Payment, { outcome }: { outcome: 'success' | 'failed' }) {
  if (!isHeld(payment) || payment.paymentSettledAt !== null) {
    refuse('INVALID_PAYMENT_STATUS_TRANSITION', 'Only a paid card payment that is not yet settled can be.')
  }
  if (outcome === 'failed') return tellPayout(world, 'failed', payment)
  const settled = world.update('payment', payment, (at) => ({ paymentSettledAt: at }))
  return tellPayout(world, 'completed', settled)
}

// Deposits: how much has come, how sure it is, and the swap on the way to the merchant

/** How long swapping a deposit into the settlement asset takes. */
const BRIDGE_MS = 2 * 60_000

const WARNINGS = {
  INSUFFICIENT_DEPOSIT_AMOUNT: 'The deposit is less than the expected amount.',
  RBF_DETECTED: 'The transaction may still be replaced by another.',
  NETWORK_FEE_SURCHARGE: 'The network fee was taken from the deposit.',
}
type Warning = keyof typeof WARNINGS

export const DEPOSIT = z.object({
  /** Left out: as many as the chain needs. */
  confirmations: z.int().min(0).max(1000).optional(),
  /** Of the expected amount; left out: all that is missing. */
  share: z.number().gt(0).max(10).optional(),
  warning: z.literal(Object.keys(WARNINGS) as Warning[]).optional(),
})

/** A deposit arrives, or confirmations of one do. Less than expected waits for the rest. */
export function takeDeposit(world: World, payment: Payment, spec: z.output<typeof DEPOSIT>): Payment {
  const deposit = payment.deposit ?? refuse('INVALID_PAYMENT_STATUS_TRANSITION', 'No deposit is expected.')
  const { confirmations: required = 1, confirmationMs = 0 } = CHAINS[deposit.chainId] ?? {}
  const observed = Math.min(required, spec.confirmations ?? required)
  if (payment.status === 'RECEIVED') {
    const seen = { ...deposit, observed: Math.max(observed, deposit.observed ?? 0) }
    return confirmed(world, world.update('payment', payment, { deposit: seen }), required)
  }
  const warned = spec.warning ? withWarning(deposit, spec.warning) : deposit
  const received = receivedWith(deposit, spec.share)
  if (received < BigInt(deposit.expected)) {
    const { warnings } = withWarning(warned, 'INSUFFICIENT_DEPOSIT_AMOUNT')
    const change = { deposit: { ...deposit, received: String(received), warnings } }
    return payment.status === 'PARTIAL'
      ? world.update('payment', payment, change)
      : move(world, payment, 'PARTIAL', change)
  }
  const txHash = `0x${Buffer.from(payment.id).toString('hex').padEnd(64, '0')}`
  const seen = { ...warned, received: String(received), observed, detectedAt: world.now, txHash }
  const dueAt = world.now + (required - observed) * confirmationMs
  return confirmed(world, move(world, payment, 'RECEIVED', { deposit: seen, dueAt }), required)
}

function receivedWith({ expected, received }: Deposit, share: number | undefined): bigint {
  if (share === undefined) return BigInt(received) > BigInt(expected) ? BigInt(received) : BigInt(expected)
  return BigInt(received) + (BigInt(expected) * BigInt(Math.round(share * 1_000_000))) / 1_000_000n
}

function withWarning(deposit: Deposit, code: Warning): Deposit {
  if (deposit.warnings.some((one) => one.code === code)) return deposit
  const warning = { code, message: WARNINGS[code], data: {} }
  return { ...deposit, warnings: [...deposit.warnings, warning] }
}

/** Completes a deposit with enough confirmations, by way of a swap where one was asked for. */
function confirmed(world: World, payment: Payment, required: number): Payment {
  const { deposit } = payment
  if (deposit === null || (deposit.observed ?? 0) < required) return payment
  if (deposit.mode === 'DIRECT') return complete(world, payment)
  return move(world, payment, 'BRIDGING', { dueAt: world.now + BRIDGE_MS })
}

/** The time has come for what is next of it. */
export function paymentDue(world: World, payment: Payment): Payment {
  // The sweep over intents: one that nobody finished stops being payable. Nothing is told.
  if (UNFINISHED.includes(payment.status)) return move(world, payment, 'EXPIRED')
  return payment.status === 'RECEIVED' ? takeDeposit(world, payment, {}) : complete(world, payment)
}
