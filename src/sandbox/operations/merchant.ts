import { z } from 'zod'
import { invalidFields, ServiceError } from '../codes.js'
import { EVENT_TYPES } from '../events.js'
import { CURRENCIES, type Endpoint, type Generation, type Payment, type Subscription } from '../model.js'
import { createPayment } from '../payment.js'
import { sessionToken } from '../sessions.js'
import { createSubscription, isRunning } from '../subscription.js'
import { endpointView, iso } from '../views-v3.js'
import type { World } from '../world.js'
import { found, given, type Operation, operation, WEB_URL } from './operation.js'
import { buyerOf, checkoutUrl, contextOf, PURCHASE, priceOf } from './purchase.js'

const SESSION = PURCHASE.extend({
  mode: z.enum(['payment', 'subscription']).optional(),
  paymentMethods: z.array(z.enum(['CARD', 'CRYPTO'])).optional(),
  expiresInMinutes: z.int().min(1).max(1440).default(60),
})

function createSession(world: World, body: z.output<typeof SESSION>, baseUrl: string): object {
  const product = found(world, 'product', body.productId, 'PRODUCT_NOT_FOUND')
  const { status, frequencyInDays, paymentMethods } = product
  const isRecurring = frequencyInDays !== null
  const missing = body.paymentMethods?.find((method) => !paymentMethods.includes(method))
  if (status !== 'ACTIVE') throw new ServiceError('CHECKOUT_PRODUCT_INACTIVE', `The product is ${status}.`)
  if (missing)
    throw new ServiceError('CHECKOUT_METHOD_NOT_AVAILABLE', `The product does not take ${missing}.`)
  if (body.mode === 'subscription' && !isRecurring) {
    throw new ServiceError(
      'CHECKOUT_SUBSCRIPTION_REQUIRES_RECURRING_PRODUCT',
      'The product is not recurring.',
    )
  }
  if (body.mode === 'payment' && isRecurring) {
    throw invalidFields({ field: 'mode', message: 'must be subscription for a recurring product' })
  }
  const id = world.makeId('cs')
  const expiresAt = world.now + body.expiresInMinutes * 60_000
  const { customFields } = body
  const checkout = { product, customer: buyerOf(world, body), context: contextOf(body), customFields }
  const spec = { ...checkout, sessionId: id, expiresAt, ...priceOf(product, body) }
  const { payment, subscription = null } = isRecurring
    ? createSubscription(world, { ...spec, totalCycles: null })
    : { payment: createPayment(world, { ...spec, purpose: 'one_time' }) }
  const at = world.tick()
  const token = sessionToken(world, id)
  world.put('session', { id, token, paymentId: payment.id, expiresAt, createdAt: at, updatedAt: at })
  const made = { paymentId: payment.id, subscriptionId: subscription?.id ?? null }
  return { id, token, url: checkoutUrl(baseUrl, token), ...made, expiresAt: iso(expiresAt) }
}

const ENDPOINT_FIELDS = {
  url: WEB_URL,
  description: z.string().max(500),
  enabledEvents: z.array(z.string()),
  isActive: z.boolean(),
}
const ENDPOINT = z.object({
  url: WEB_URL,
  description: ENDPOINT_FIELDS.description.default(''),
  enabledEvents: ENDPOINT_FIELDS.enabledEvents.default([]),
  isActive: z.boolean().default(true),
  /** Which events it hears: v2 has its address in the dashboard, which a sandbox lacks. */
  generation: z.enum(['v3', 'v2']).default('v3'),
  /** One that the receiver knows already; left out: a fresh one. */
  secret: z.string().min(1).max(255).optional(),
})

function assertKnownTypes(types: readonly string[], generation: Generation): void {
  const wrong = types.filter((type) => !EVENT_TYPES[generation].includes(type))
  if (wrong.length === 0) return
  throw invalidFields({ field: 'enabledEvents', message: `${wrong.join(', ')}: no types of ${generation}` })
}

export function registerEndpoint(world: World, body: z.input<typeof ENDPOINT>): Endpoint {
  const { secret = world.makeId('whsec'), ...fields } = ENDPOINT.parse(body)
  assertKnownTypes(fields.enabledEvents, fields.generation)
  const at = world.tick()
  return world.put('endpoint', { id: world.makeId('whep'), ...fields, secret, createdAt: at, updatedAt: at })
}

const withSecret = (endpoint: Endpoint): object => ({ ...endpointView(endpoint), secret: endpoint.secret })

// Plain sums over what was paid

type About = (record: Pick<Payment | Subscription, 'customerId' | 'productId'>) => boolean

const paidPayments = (world: World): readonly Payment[] =>
  [...world.each('payment')].filter(({ paymentReceivedAt }) => paymentReceivedAt !== null)

const net = ({ merchantNetCents, refundedAmountCents, chargebackAt }: Payment): number =>
  chargebackAt === null ? merchantNetCents - refundedAmountCents : 0

const total = (payments: readonly Payment[], cents: (payment: Payment) => number): number =>
  payments.reduce((sum, payment) => sum + cents(payment), 0)

const SUMS = ['grossAmountCents', 'refundedAmountCents', 'vatAmountCents', 'platformFeeCents'] as const

export function sumsOf(world: World, isAbout: About): object {
  const paid = paidPayments(world).filter(isAbout)
  const revenue = CURRENCIES.map((currency) => {
    const own = paid.filter((payment) => payment.currency === currency)
    const sums = SUMS.map((name) => [name, total(own, (payment) => payment[name])] as const)
    return { currency, ...Object.fromEntries(sums), netAmountCents: total(own, net) }
  })
  let activeSubscriptions = 0
  for (const one of world.each('subscription')) if (isRunning(one) && isAbout(one)) activeSubscriptions += 1
  return { payments: paid.length, activeSubscriptions, revenue }
}

/** What is the merchant's: settled, and still to settle. */
function balances(world: World): object {
  const paid = paidPayments(world)
  const sum = (currency: string, isCrypto: boolean, isSettled: boolean): number =>
    total(
      paid.filter((one) => one.currency === currency && (one.deposit !== null) === isCrypto),
      (one) => ((one.paymentSettledAt !== null) === isSettled ? net(one) : 0),
    )
  return {
    balances: CURRENCIES.map((currency) => ({
      currency,
      card: { availableCents: sum(currency, false, true), pendingCents: sum(currency, false, false) },
      crypto: { availableCents: sum(currency, true, true), pendingCents: sum(currency, true, false) },
    })),
  }
}

export const MERCHANT_OPERATIONS: readonly Operation[] = [
  operation('POST /v3/checkout/sessions', (world, { body, baseUrl }) => createSession(world, body, baseUrl), {
    status: 201,
    body: SESSION,
  }),
  operation('GET /v3/balance', balances),
  operation('GET /v3/analytics', (world) => sumsOf(world, () => true)),
  operation('GET /v3/products/:id/analytics', (world, { params }) => {
    const { id } = found(world, 'product', params.id, 'PRODUCT_NOT_FOUND')
    return { productId: id, ...sumsOf(world, ({ productId }) => productId === id) }
  }),
  operation('POST /v3/webhook-endpoints', (world, { body }) => withSecret(registerEndpoint(world, body)), {
    status: 201,
    body: ENDPOINT,
  }),
  operation(
    'PATCH /v3/webhook-endpoints/:id',
    (world, { params, body }) => {
      const endpoint = found(world, 'endpoint', params.id, 'NOT_FOUND')
      const changed = { ...endpoint, ...given(body), updatedAt: world.tick() }
      assertKnownTypes(changed.enabledEvents, changed.generation)
      return endpointView(world.put('endpoint', changed))
    },
    { body: z.object(ENDPOINT_FIELDS).partial() },
  ),
  operation('POST /v3/webhook-endpoints/:id/rotate-secret', (world, { params }) => {
    const endpoint = found(world, 'endpoint', params.id, 'WEBHOOK_ENDPOINT_NOT_FOUND')
    return withSecret(
      world.put('endpoint', { ...endpoint, secret: world.makeId('whsec'), updatedAt: world.tick() }),
    )
  }),
  operation('GET /v3/notification-preferences', ({ settings }) => ({
    merchantOfRecord: settings.merchantOfRecord,
    customerEmails: { receipt: true, renewalReminder: true, paymentFailed: true },
    merchantEmails: { newSubscription: true, chargeback: true, payout: true },
  })),
  operation('GET /health', () => ({ status: 'ok' }), { form: 'json' }),
]
