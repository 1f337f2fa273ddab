import { z } from 'zod'
import { invalidFields, ServiceError } from '../codes.js'
import { EVENT_TYPES } from '../events.js'
import type { Endpoint, Generation } from '../model.js'
import { createPayment } from '../payment.js'
import { sessionToken } from '../sessions.js'
import { createSubscription } from '../subscription.js'
import { endpointView, iso } from '../views-v3.js'
import type { World } from '../world.js'
import { assertSome, found, type Operation, operation, WEB_URL } from './operation.js'
import { buyerOf, checkoutUrl, contextOf, PURCHASE, priceOf } from './purchase.js'
import { balanceOf, sumsOf } from './sums.js'

const SESSION = PURCHASE.extend({
  mode: z.enum(['payment', 'subscription']).optional(),
  paymentMethods: z
    .array(z.enum(['CARD', 'CRYPTO']))
    .min(1)
    .optional(),
  expiresInMinutes: z.int().min(1).max(1440).default(60),
})

function createSession(world: World, body: z.output<typeof SESSION>, baseUrl: string): object {
  const product = found(world, 'product', body.productId, 'PRODUCT_NOT_FOUND')
  if (product.status !== 'ACTIVE') {
    throw new ServiceError('CHECKOUT_PRODUCT_INACTIVE', `The product ${product.id} is ${product.status}.`)
  }
  const isRecurring = product.frequencyInDays !== null
  if (body.mode === 'subscription' && !isRecurring) {
    const message = `The product ${product.id} is not recurring.`
    throw new ServiceError('CHECKOUT_SUBSCRIPTION_REQUIRES_RECURRING_PRODUCT', message)
  }
  if (body.mode === 'payment' && isRecurring) {
    throw invalidFields({ field: 'mode', message: 'must be subscription for a recurring product' })
  }
  const missing = body.paymentMethods?.find((method) => !product.paymentMethods.includes(method))
  if (missing !== undefined) {
    throw new ServiceError(
      'CHECKOUT_METHOD_NOT_AVAILABLE',
      `The product ${product.id} does not take ${missing}.`,
    )
  }
  const id = world.makeId('cs')
  const expiresAt = world.now + body.expiresInMinutes * 60_000
  const spec = { product, customer: buyerOf(world, body), context: contextOf(body), sessionId: id, expiresAt }
  const price = priceOf(product, body)
  const { payment, subscription } = isRecurring
    ? createSubscription(world, { ...spec, priceCents: price.priceCents, totalCycles: null })
    : { payment: createPayment(world, { ...spec, ...price, purpose: 'one_time' }), subscription: null }
  const at = world.tick()
  const token = sessionToken(world, id)
  const subscriptionId = subscription?.id ?? null
  world.put('session', {
    id,
    token,
    paymentId: payment.id,
    subscriptionId,
    expiresAt,
    createdAt: at,
    updatedAt: at,
  })
  return {
    id,
    token,
    url: checkoutUrl(baseUrl, token),
    paymentId: payment.id,
    subscriptionId,
    expiresAt: iso(expiresAt),
  }
}

const ENDPOINT = z.object({
  url: WEB_URL,
  description: z.string().max(500).default(''),
  enabledEvents: z.array(z.string()).default([]),
  isActive: z.boolean().default(true),
  /** Which events it hears; the legacy ones go to an address set in the dashboard, which a sandbox lacks. */
  generation: z.enum(['v3', 'v2']).default('v3'),
  /** One that the receiver knows already; left out: a fresh one. */
  secret: z.string().min(1).max(255).optional(),
})
const ENDPOINT_CHANGES = z.object({
  url: WEB_URL.optional(),
  description: z.string().max(500).optional(),
  enabledEvents: z.array(z.string()).optional(),
  isActive: z.boolean().optional(),
})

function assertKnownTypes(types: readonly string[] | undefined, generation: Generation): void {
  const wrong = types?.filter((type) => !EVENT_TYPES[generation].includes(type)) ?? []
  if (wrong.length === 0) return
  throw invalidFields(
    ...wrong.map((type) => ({ field: 'enabledEvents', message: `${type} is not a type of ${generation}` })),
  )
}

export function registerEndpoint(world: World, body: z.input<typeof ENDPOINT>): Endpoint {
  const { secret, ...fields } = ENDPOINT.parse(body)
  assertKnownTypes(fields.enabledEvents, fields.generation)
  const at = world.tick()
  const known = { secret: secret ?? world.makeId('whsec'), createdAt: at, updatedAt: at }
  return world.put('endpoint', { id: world.makeId('whep'), ...fields, ...known })
}

export const MERCHANT_OPERATIONS: readonly Operation[] = [
  operation(
    'POST /v3/checkout/sessions',
    { about: 'create a signed hosted-checkout session token', status: 201, body: SESSION },
    (world, { body, baseUrl }) => createSession(world, body, baseUrl),
  ),
  operation('GET /v3/balance', { about: 'unified balance across card and crypto' }, (world) =>
    balanceOf(world),
  ),
  operation('GET /v3/analytics', { about: 'organization-wide revenue analytics' }, (world) =>
    sumsOf(world, () => true),
  ),
  operation('GET /v3/products/:id/analytics', { about: 'product analytics' }, (world, { params }) => {
    const { id } = found(world, 'product', params.id, 'PRODUCT_NOT_FOUND')
    return { productId: id, ...sumsOf(world, ({ productId }) => productId === id) }
  }),
  operation(
    'POST /v3/webhook-endpoints',
    { about: 'register endpoint; returns the secret once', status: 201, body: ENDPOINT },
    (world, { body }) => {
      const endpoint = registerEndpoint(world, body)
      return { ...endpointView(endpoint), secret: endpoint.secret }
    },
  ),
  operation(
    'PATCH /v3/webhook-endpoints/:id',
    { about: 'update endpoint', body: ENDPOINT_CHANGES },
    (world, { params, body }) => {
      const endpoint = found(world, 'endpoint', params.id, 'NOT_FOUND')
      assertSome(body)
      assertKnownTypes(body.enabledEvents, endpoint.generation)
      const given = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
      return endpointView(world.put('endpoint', { ...endpoint, ...given, updatedAt: world.tick() }))
    },
  ),
  operation(
    'POST /v3/webhook-endpoints/:id/rotate-secret',
    { about: 'rotate signing secret' },
    (world, { params }) => {
      const endpoint = found(world, 'endpoint', params.id, 'WEBHOOK_ENDPOINT_NOT_FOUND')
      const secret = world.makeId('whsec')
      const rotated = world.put('endpoint', { ...endpoint, secret, updatedAt: world.tick() })
      return { ...endpointView(rotated), secret }
    },
  ),
  operation('GET /v3/notification-preferences', { about: 'read notification preferences' }, (world) => {
    const { merchantOfRecord } = world.settings
    return {
      merchantOfRecord,
      customerEmails: { receipt: true, renewalReminder: true, paymentFailed: true },
      merchantEmails: { newSubscription: true, chargeback: true, payout: true },
    }
  }),
  operation('GET /health', { about: 'liveness', form: 'json' }, () => ({ status: 'ok' })),
]
