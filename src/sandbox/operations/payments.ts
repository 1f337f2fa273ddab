/* Payments, and what begins with one: subscriptions and checkout sessions. */

import { z } from 'zod'
import type { ServiceCode } from '../../provider/service-codes.js'
import { refuse, refuseField } from '../codes.js'
import {
  CURRENCIES,
  type Customer,
  METHODS,
  type Payment,
  type Product,
  type Subscription,
} from '../model.js'
import { customerByEmail, fillIn, followed, outcomeOfToken, pay } from '../paying.js'
import { cancelCheckout, chooseMethod, createPayment, refund } from '../payment.js'
import { checkoutUrl, sessionToken } from '../sessions.js'
import { createSubscription, isIncomplete } from '../subscription.js'
import { LEGACY_PAYMENT_STATUSES, legacyPaymentView, legacyStatus } from '../views-v2.js'
import { iso, paymentView, shown, wholeSubscriptionView } from '../views-v3.js'
import type { World } from '../world.js'
import { COUNTRY, CRYPTO, EMAIL, INSTANT, NAME, orNull, PAGE_QUERY, PRICE, TEXT, WEB_URL } from './fields.js'
import { type Call, found, listing, named, numberedPage, operation } from './operation.js'

const CUSTOM_FIELD = z.object({
  key: TEXT,
  label: z.string().max(255),
  type: TEXT,
  required: z.boolean().optional(),
  placeholder: z.string().max(255).optional(),
  options: z.array(z.object({ value: z.string(), label: z.string() })).optional(),
  validation: z.object({ regex: z.string().optional(), errorMessage: z.string().optional() }).optional(),
})
export type Question = z.output<typeof CUSTOM_FIELD>

/** The merchant's own texts and objects, given back as they came. */
const CONTEXT = z.object({
  externalRef: orNull(z.string().max(255)),
  metadata: orNull(z.record(z.string(), z.unknown())),
  successUrl: orNull(WEB_URL),
  cancelUrl: orNull(WEB_URL),
})

const PURCHASE = CONTEXT.extend({
  productId: TEXT,
  customerId: TEXT.optional(),
  customerEmail: EMAIL.optional(),
  customerFirstName: NAME.max(100).optional(),
  customerLastName: NAME.max(100).optional(),
  /** Where the buyer is billed, for VAT. */
  customerCountry: COUNTRY.optional(),
  priceCents: PRICE.optional(),
  currency: z.enum(CURRENCIES).optional(),
  customFields: orNull(z.array(CUSTOM_FIELD).max(10)),
  expiresAt: INSTANT.optional(),
})
type Purchase = Call<typeof PURCHASE>

/** How often a subscription is paid; left out: until somebody ends it. */
const SUBSCRIPTION = PURCHASE.extend({ totalCycles: orNull(z.int().min(1).max(1000)) })

const CAPTURE = z.enum(['automatic', 'manual']).default('automatic')
const MODE = z.enum(['DIRECT', 'AUTOSWAP']).default('DIRECT')

/** How a v3 request says what it pays with. */
const INSTRUMENT = z.object({
  method: z.enum(METHODS).optional(),
  card: z.object({ tokenizedInstrument: TEXT.optional(), capture: CAPTURE }).optional(),
  crypto: CRYPTO.extend({ mode: MODE }).optional(),
})

const PAID_PURCHASE = PURCHASE.extend(INSTRUMENT.shape)
const PAID_SUBSCRIPTION = SUBSCRIPTION.extend(INSTRUMENT.shape)

const SESSION = PURCHASE.extend({
  mode: z.enum(['payment', 'subscription']).optional(),
  paymentMethods: z.array(z.enum(['CARD', 'CRYPTO'])).optional(),
  expiresInMinutes: z.int().min(1).max(1440).default(60),
})

/** The buyer, by id, else by email; undefined: the checkout will ask. @throws {ServiceError} `code` */
function buyerOf({ world, input }: Purchase, code: ServiceCode): Customer | undefined {
  const { customerId, customerEmail, customerFirstName, customerLastName, customerCountry = null } = input
  const name = [customerFirstName, customerLastName].filter(Boolean).join(' ') || null
  if (customerId !== undefined) {
    const customer = world.find('customer', customerId)
    if (customer?.deletedAt !== null) return refuse(code, `There is no customer ${customerId}.`)
    return fillIn(world, customer, name, customerCountry)
  }
  return customerEmail === undefined
    ? undefined
    : customerByEmail(world, customerEmail, name, customerCountry)
}

/** The product's own price, or the one that the request names where the product leaves it open. */
function priceOf({ input: { priceCents, currency } }: Purchase, product: Product) {
  if (!product.isCustomPrice) {
    if (priceCents !== undefined)
      refuseField('priceCents', 'must not be sent for a product with a fixed price')
    return { priceCents: product.priceCents ?? 0, currency: product.currency }
  }
  const message = 'The product has no price of its own: send priceCents and currency.'
  if (priceCents === undefined) return refuse('PRODUCT_PRICE_MISSING', message)
  if (currency === undefined) return refuseField('currency', 'is required with priceCents')
  return { priceCents: Number(priceCents), currency }
}

/** @throws {ServiceError} `PRODUCT_ARCHIVED`, `PRODUCT_OUT_OF_STOCK` */
function assertOnSale(world: World, { id, status, supply, frequencyInDays }: Product): void {
  if (status !== 'ACTIVE') refuse('PRODUCT_ARCHIVED', `The product ${id} is ${status}, not ACTIVE.`)
  if (supply === null) return
  let sold = 0
  if (frequencyInDays === null) {
    for (const one of world.each('payment')) if (one.productId === id && isPaid(one)) sold += 1
  } else {
    for (const one of world.each('subscription')) if (one.productId === id && isTaken(one)) sold += 1
  }
  if (sold >= supply) refuse('PRODUCT_OUT_OF_STOCK', `All ${supply} of ${id} are sold.`)
}

const isPaid = ({ paymentReceivedAt }: Payment): boolean => paymentReceivedAt !== null
const isTaken = ({ endedAt, currentCycle }: Subscription): boolean => endedAt === null && currentCycle > 0

/** A deadline that has passed could only be a mistake. */
function deadlineOf({ world, input }: Purchase): number | undefined {
  const { expiresAt = Number.POSITIVE_INFINITY } = input
  if (expiresAt <= world.now) refuseField('expiresAt', `must be after the sandbox's clock, ${iso(world.now)}`)
  return input.expiresAt
}

/** What every purchase has. */
function orderOf(call: Purchase, product: Product, unknown: ServiceCode = 'CUSTOMER_NOT_FOUND') {
  const { customFields } = call.input
  const customer = buyerOf(call, unknown)
  return { product, customer, context: CONTEXT.parse(call.input), customFields, ...priceOf(call, product) }
}

/** Null: none. Undefined: that of its rail. */
type Deadline = number | null | undefined

function oneTimePayment(call: Purchase, expiresAt: Deadline, capture: Payment['capture'] = 'automatic') {
  const { world, input } = call
  const product = found(world, 'product', input.productId, 'PRODUCT_NOT_FOUND')
  assertOnSale(world, product)
  if (product.frequencyInDays !== null) refuseField('productId', 'must be a one-time product')
  const order = orderOf(call, product)
  return createPayment(world, { ...order, purpose: 'one_time', capture, expiresAt })
}

function subscribe(call: Call<typeof SUBSCRIPTION>, expiresAt: Deadline) {
  const { world, input } = call
  const product = found(world, 'product', input.productId, 'SUBSCRIPTION_PRODUCT_NOT_FOUND')
  const { id, frequencyInDays } = product
  assertOnSale(world, product)
  if (frequencyInDays === null) refuse('PRODUCT_NOT_RECURRING', `The product ${id} is not recurring.`)
  const order = orderOf(call, product, 'SUBSCRIPTION_CUSTOMER_NOT_FOUND')
  return createSubscription(world, { ...order, totalCycles: input.totalCycles, expiresAt })
}

/** Has a new payment use what the request says it pays with; a token is charged at once. */
function startPayment({ world, input }: Call<typeof INSTRUMENT>, payment: Payment): Payment {
  const { method, card, crypto } = input
  if (crypto !== undefined || method === 'CRYPTO') return chooseMethod(world, payment, 'CRYPTO', crypto)
  const token = card?.tokenizedInstrument
  if (token === undefined) return method === undefined ? payment : chooseMethod(world, payment, method)
  return pay(world, payment, { method: method ?? 'CARD', outcome: outcomeOfToken(token) })
}

function createSession(call: Call<typeof SESSION>): object {
  const { world, input, baseUrl } = call
  const { mode } = input
  const product = found(world, 'product', input.productId, 'PRODUCT_NOT_FOUND')
  const { status, frequencyInDays, paymentMethods } = product
  const isRecurring = frequencyInDays !== null
  const missing = input.paymentMethods?.find((method) => !paymentMethods.includes(method))
  if (status !== 'ACTIVE') refuse('CHECKOUT_PRODUCT_INACTIVE', `The product is ${status}.`)
  if (missing) refuse('CHECKOUT_METHOD_NOT_AVAILABLE', `The product does not take ${missing}.`)
  if (mode === 'subscription' && !isRecurring) {
    refuse('CHECKOUT_SUBSCRIPTION_REQUIRES_RECURRING_PRODUCT', 'The product is not recurring.')
  }
  if (mode === 'payment' && isRecurring) refuseField('mode', 'must be subscription for a recurring product')
  const id = world.makeId('cs')
  const expiresAt = world.now + input.expiresInMinutes * 60_000
  const spec = { ...orderOf(call, product), sessionId: id, expiresAt }
  const { payment, subscription = null } = isRecurring
    ? createSubscription(world, { ...spec, totalCycles: null })
    : { payment: createPayment(world, { ...spec, purpose: 'one_time' }) }
  const at = world.tick()
  const token = sessionToken(world, id)
  world.put('session', { id, token, paymentId: payment.id, expiresAt, createdAt: at, updatedAt: at })
  const url = checkoutUrl(baseUrl, token)
  const subscriptionId = subscription?.id ?? null
  return { id, token, url, paymentId: payment.id, subscriptionId, expiresAt: iso(expiresAt) }
}

/** @throws {ServiceError} `FIRST_PAYMENT_DECLINED`, with everything made staying on record */
function assertNotDeclined({ status, id: paymentId, declineCode, declineCategory }: Payment): void {
  if (status !== 'DECLINED' && status !== 'FAILED') return
  const data = { paymentId, declineCode, declineCategory }
  refuse('FIRST_PAYMENT_DECLINED', 'The first payment was declined.', { data, keepsChanges: true })
}

/** What v2 answers to a purchase. */
function purchased({ id, metadata, customFields }: Payment, baseUrl: string) {
  return { paymentId: id, paymentUrl: checkoutUrl(baseUrl, id), metadata, customFields }
}

export const paymentNamed = named('payment', 'PAYMENT_NOT_FOUND')

const REASON = orNull(z.string().max(1000))
const CANCEL = z.object({ reason: REASON })
const REFUND = z.object({
  amountInCents: z.int().min(1).optional(),
  reason: REASON,
  idempotencyKey: z.string().min(1).max(255).optional(),
})

const FILTERED_PAGE = PAGE_QUERY.extend({
  currency: z.string().max(20).toUpperCase().optional(),
  status: z.enum(LEGACY_PAYMENT_STATUSES).optional(),
  customerEmail: EMAIL.toLowerCase().optional(),
})

function filterOf({ world, input }: Call<typeof FILTERED_PAGE>) {
  const { currency, status, customerEmail } = input
  if (!currency && !status && !customerEmail) return undefined
  const emailOf = ({ customerId }: Payment) => world.find('customer', customerId)?.email.toLowerCase()
  return (payment: Payment): boolean =>
    (!currency || payment.deposit?.symbol === currency) &&
    (!status || legacyStatus(payment) === status) &&
    (!customerEmail || emailOf(payment) === customerEmail)
}

function cancelPayment(call: Call<typeof CANCEL>): Payment {
  const { world } = call
  const payment = paymentNamed(call)
  const subscription = world.find('subscription', payment.subscriptionId)
  const isFirst = payment.purpose === 'cycle' && subscription !== undefined && isIncomplete(subscription)
  if (subscription !== undefined && !isFirst && payment.canceledAt === null) {
    refuse('PAYMENT_NOT_CANCELABLE', 'The payment belongs to a running subscription: cancel that.')
  }
  return followed(world, cancelCheckout(world, payment, call.input.reason))
}

/** A receipt of one line, in the least that a PDF reader takes. */
function receipt({ id, paymentReceivedAt, grossAmountCents, currency }: Payment): Buffer {
  if (paymentReceivedAt === null) {
    refuse('PAYMENT_NOT_FOUND', `The payment ${id} is not paid: it has no receipt.`)
  }
  const text = `Receipt for ${id}: ${(grossAmountCents / 100).toFixed(2)} ${currency}`
  const stream = `BT /F1 14 Tf 72 720 Td (${text}) Tj ET`
  const objects = `%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources 6 0 R >> endobj
4 0 obj << /Length ${stream.length} >> stream
${stream}
endstream endobj
5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj
6 0 obj << /Font << /F1 5 0 R >> >> endobj
`
  const places = [...objects.matchAll(/^\d 0 obj/gm)].map(({ index }) => String(index).padStart(10, '0'))
  return Buffer.from(`${objects}xref
0 7
0000000000 65535 f${' '}
${places.map((place) => `${place} 00000 n \n`).join('')}trailer << /Size 7 /Root 1 0 R >>
startxref
${objects.length}
%%EOF
`)
}

const DISCOUNT = z
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

function createDiscount({ world, input }: Call<typeof DISCOUNT>): object {
  if (input.productId !== null) found(world, 'product', input.productId, 'PRODUCT_NOT_FOUND')
  const at = world.tick()
  const discount = { id: world.makeId('dis'), ...input, createdAt: at, updatedAt: at }
  return shown(world.put('discount', discount), 'id code percentOff amountOffCents productId createdAt')
}

function refunded(call: Call<typeof REFUND>): object {
  const before = paymentNamed(call)
  const { amountInCents: wanted = null, reason } = call.input
  const payment = refund(call.world, before, wanted)
  const { id: paymentId, refundedAmountCents } = payment
  const amountInCents = refundedAmountCents - before.refundedAmountCents
  return { paymentId, status: legacyStatus(payment), amountInCents, refundedAmountCents, reason }
}

export const PAYMENT_OPERATIONS = [
  operation('POST /v3/payments', { status: 201, input: PAID_PURCHASE }, (call) => {
    const payment = startPayment(call, oneTimePayment(call, deadlineOf(call), call.input.card?.capture))
    return { ...paymentView(payment, call.world), paymentUrl: checkoutUrl(call.baseUrl, payment.id) }
  }),
  operation('POST /v3/subscriptions', { status: 201, input: PAID_SUBSCRIPTION }, (call) => {
    const { payment: first, subscription: created } = subscribe(call, deadlineOf(call))
    const payment = startPayment(call, first)
    assertNotDeclined(payment)
    const subscription = call.world.find('subscription', created.id) ?? created
    const paymentUrl = checkoutUrl(call.baseUrl, payment.id)
    return { ...wholeSubscriptionView(subscription), payment: paymentView(payment, call.world), paymentUrl }
  }),
  operation('POST /v3/checkout/sessions', { status: 201, input: SESSION }, createSession),
  listing('GET /v3/payments', { kind: 'payment', view: paymentView }),
  operation('GET /v3/payments/:id', {}, paymentNamed, paymentView),
  operation('GET /v3/payments/:id/receipt.pdf', {}, paymentNamed, receipt),

  // In v2, what has no deadline waits for ever.
  operation('POST /api/payment/create', { status: 201, input: PURCHASE }, (call) =>
    purchased(oneTimePayment(call, deadlineOf(call) ?? null), call.baseUrl),
  ),
  operation('POST /api/subscription/create', { status: 201, input: SUBSCRIPTION }, (call) => {
    const { payment, subscription } = subscribe(call, deadlineOf(call) ?? null)
    return { ...purchased(payment, call.baseUrl), subscriptionId: subscription.id }
  }),
  operation('GET /api/payment', { input: FILTERED_PAGE }, (call) =>
    numberedPage(call.world, call.input, { kind: 'payment', view: legacyPaymentView, only: filterOf(call) }),
  ),
  operation('GET /api/payment/:paymentId', {}, paymentNamed, legacyPaymentView),
  operation('POST /api/payment/:paymentId/cancel', { input: CANCEL }, cancelPayment, legacyPaymentView),
  operation('POST /api/refund/:paymentId', { input: REFUND, idempotency: 'v2' }, refunded),
  operation('POST /api/discount/create', { status: 201, input: DISCOUNT }, createDiscount),
]
