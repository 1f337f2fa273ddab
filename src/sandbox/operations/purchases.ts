/* What begins with a purchase: payments, subscriptions and checkout sessions. */

import { formatInstant } from '../../provider/instant.js'
import { CONTEXT, DISCOUNT, INSTRUMENT, PURCHASE, SESSION, SUBSCRIPTION } from '../../provider/requests.js'
import type { ServiceCode } from '../../provider/service-codes.js'
import { checkoutUrl, sessionToken } from '../checkout.js'
import { refuse, refuseField } from '../codes.js'
import type { Customer, Payment, Product, Subscription } from '../model.js'
import { customerByEmail, fillIn, pay } from '../paying.js'
import { assertNotDeclined, chooseMethod, createPayment, outcomeOf, type PaymentSpec } from '../payment.js'
import { createSubscription } from '../subscription.js'
import { paymentView, shown, wholeSubscriptionView } from '../views-v3.js'
import type { World } from '../world.js'
import { type Call, found, operation } from './operation.js'

type Purchase = Call<typeof PURCHASE>

/** The buyer, by id, else by email; undefined: the checkout will ask. @throws {ServiceError} `code` */
function buyerOf({ world, input }: Purchase, code: ServiceCode): Customer | undefined {
  const { customerId, customerEmail: email, customerFirstName, customerLastName } = input
  const name = [customerFirstName, customerLastName].filter(Boolean).join(' ') || null
  const given = { name, country: input.customerCountry }
  if (customerId !== undefined) {
    const customer = world.find('customer', customerId)
    if (customer?.deletedAt !== null) return refuse(code, `There is no customer ${customerId}.`)
    return fillIn(world, customer, given)
  }
  return email === undefined ? undefined : customerByEmail(world, { email, ...given })
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
  const buys = [...world.each(frequencyInDays === null ? 'payment' : 'subscription')]
  const sold = buys.filter((one) => one.productId === id && isSold(one))
  if (sold.length >= supply) refuse('PRODUCT_OUT_OF_STOCK', `All ${supply} of ${id} are sold.`)
}

const isSold = (one: Payment | Subscription): boolean =>
  'currentCycle' in one ? one.endedAt === null && one.currentCycle > 0 : one.paymentReceivedAt !== null

/** What every purchase has. */
function orderOf(call: Purchase, product: Product, unknown: ServiceCode = 'CUSTOMER_NOT_FOUND') {
  const { world, input } = call
  const { customFields, expiresAt } = input
  // A deadline that has passed could only be a mistake.
  if (expiresAt !== undefined && expiresAt <= world.now) {
    refuseField('expiresAt', `must be after the sandbox's clock, ${formatInstant(world.now)}`)
  }
  const customer = buyerOf(call, unknown)
  const context = CONTEXT.parse(input)
  return { product, customer, context, customFields, expiresAt, ...priceOf(call, product) }
}

/** @param more what is the generation's own */
function oneTimePayment(call: Purchase, more: Partial<PaymentSpec>): Payment {
  const { world, input } = call
  const product = found(world, 'product', input.productId, 'PRODUCT_NOT_FOUND')
  assertOnSale(world, product)
  if (product.frequencyInDays !== null) refuseField('productId', 'must be a one-time product')
  return createPayment(world, { ...orderOf(call, product), purpose: 'one_time', ...more })
}

function subscribe(call: Call<typeof SUBSCRIPTION>, more: Partial<PaymentSpec>) {
  const { world, input } = call
  const product = found(world, 'product', input.productId, 'SUBSCRIPTION_PRODUCT_NOT_FOUND')
  const { id, frequencyInDays } = product
  assertOnSale(world, product)
  if (frequencyInDays === null) refuse('PRODUCT_NOT_RECURRING', `The product ${id} is not recurring.`)
  const order = orderOf(call, product, 'SUBSCRIPTION_CUSTOMER_NOT_FOUND')
  return createSubscription(world, { ...order, totalCycles: input.totalCycles, ...more })
}

/** In v2, what has no deadline waits for ever. */
const endless = ({ input }: Purchase): Partial<PaymentSpec> => ({ expiresAt: input.expiresAt ?? null })

/** Has a new payment use what the request says it pays with; a token is charged at once. */
function startPayment({ world, input }: Call<typeof INSTRUMENT>, payment: Payment): Payment {
  const { method, card, crypto } = input
  if (crypto !== undefined || method === 'CRYPTO') return chooseMethod(world, payment, 'CRYPTO', crypto)
  const token = card?.tokenizedInstrument
  if (token === undefined) return method === undefined ? payment : chooseMethod(world, payment, method)
  return pay(world, payment, { method: method ?? 'CARD', outcome: outcomeOf(token) })
}

function createSession(call: Call<typeof SESSION>): object {
  const { world, input, baseUrl } = call
  const product = found(world, 'product', input.productId, 'PRODUCT_NOT_FOUND')
  const { status, frequencyInDays, paymentMethods } = product
  const isRecurring = frequencyInDays !== null
  const missing = input.paymentMethods?.find((method) => !paymentMethods.includes(method))
  if (status !== 'ACTIVE') refuse('CHECKOUT_PRODUCT_INACTIVE', `The product is ${status}.`)
  if (missing) refuse('CHECKOUT_METHOD_NOT_AVAILABLE', `The product does not take ${missing}.`)
  if (input.mode === 'subscription' && !isRecurring) {
    refuse('CHECKOUT_SUBSCRIPTION_REQUIRES_RECURRING_PRODUCT', 'The product is not recurring.')
  }
  if (input.mode === 'payment' && isRecurring)
    refuseField('mode', 'must be subscription for a recurring product')
  const expiresAt = world.now + input.expiresInMinutes * 60_000
  const spec = { ...orderOf(call, product), hasSession: true, expiresAt }
  const { payment, subscription = null } = isRecurring
    ? createSubscription(world, { ...spec, totalCycles: null })
    : { payment: createPayment(world, { ...spec, purpose: 'one_time' }) }
  const { id: paymentId, sessionId: id } = payment
  const token = sessionToken(world, id ?? '')
  const subscriptionId = subscription?.id ?? null
  const url = checkoutUrl(baseUrl(), token)
  return { id, token, url, paymentId, subscriptionId, expiresAt: formatInstant(expiresAt) }
}

/** What v2 answers to a purchase. */
function purchased({ id, metadata, customFields }: Payment, baseUrl: string) {
  return { paymentId: id, paymentUrl: checkoutUrl(baseUrl, id), metadata, customFields }
}

const SUBSCRIPTION_PAID = SUBSCRIPTION.extend(INSTRUMENT.shape)

export const PURCHASE_OPERATIONS = [
  operation('POST /v3/payments', { status: 201, input: PURCHASE.extend(INSTRUMENT.shape) }, (call) => {
    const { card } = call.input
    const payment = startPayment(call, oneTimePayment(call, { ...(card && { capture: card.capture }) }))
    return { ...paymentView(payment, call.world), paymentUrl: checkoutUrl(call.baseUrl(), payment.id) }
  }),
  operation('POST /v3/subscriptions', { status: 201, input: SUBSCRIPTION_PAID }, (call) => {
    const { payment: first, subscription: created } = subscribe(call, {})
    const payment = assertNotDeclined(startPayment(call, first), 'FIRST_PAYMENT_DECLINED')
    const subscription = call.world.find('subscription', created.id) ?? created
    const paymentUrl = checkoutUrl(call.baseUrl(), payment.id)
    return { ...wholeSubscriptionView(subscription), payment: paymentView(payment, call.world), paymentUrl }
  }),
  operation('POST /v3/checkout/sessions', { status: 201, input: SESSION }, createSession),
  operation('POST /api/payment/create', { status: 201, input: PURCHASE }, (call) =>
    purchased(oneTimePayment(call, endless(call)), call.baseUrl()),
  ),
  operation('POST /api/subscription/create', { status: 201, input: SUBSCRIPTION }, (call) => {
    const { payment, subscription } = subscribe(call, endless(call))
    return { ...purchased(payment, call.baseUrl()), subscriptionId: subscription.id }
  }),
  operation('POST /api/discount/create', { status: 201, input: DISCOUNT }, ({ world, input }) => {
    if (input.productId !== null) found(world, 'product', input.productId, 'PRODUCT_NOT_FOUND')
    const discount = world.put('discount', { ...world.fresh('dis'), ...input })
    return shown(discount, 'id code percentOff amountOffCents productId createdAt')
  }),
]
