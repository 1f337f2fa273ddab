import type { z } from 'zod'
import { WIRE_TYPES } from '../../provider/event-types.js'
import { CURRENCIES, WEBHOOK_ENDPOINT } from '../../provider/requests.js'
import { refuseField } from '../codes.js'
import { ENDPOINT, type Endpoint, type Payment, type Subscription } from '../model.js'
import { isRunning } from '../subscription.js'
import { endpointView } from '../views-v3.js'
import type { World } from '../world.js'
import { customerNamed } from './customers.js'
import { type Call, changesOf, found, operation, updated } from './operation.js'
import { productNamed } from './products.js'

const CHANGES = changesOf(WEBHOOK_ENDPOINT)

/** Keeps an endpoint. @throws {ServiceError} `VALIDATION_ERROR` if it asks for types of events that there are not */
function kept(world: World, endpoint: Endpoint): Endpoint {
  const { generation, enabledEvents } = endpoint
  const wrong = enabledEvents.filter((type) => !WIRE_TYPES[generation].includes(type))
  if (wrong.length > 0) refuseField('enabledEvents', `${wrong.join(', ')}: no types of ${generation}`)
  return world.put('endpoint', endpoint)
}

export function registerEndpoint(world: World, body: z.input<typeof ENDPOINT>): Endpoint {
  const { secret = world.makeId('whsec'), ...fields } = ENDPOINT.parse(body)
  return kept(world, { ...fields, secret, ...world.fresh('whep') })
}

const register = ({ world, input }: Call<typeof ENDPOINT>) => registerEndpoint(world, input)

function updateEndpoint(call: Call<typeof CHANGES>): Endpoint {
  const endpoint = found(call.world, 'endpoint', call.id, 'NOT_FOUND')
  // The documents require no field here and show no other way to read an endpoint: a change of nothing shows it.
  if (Object.keys(call.input).length === 0) return endpoint
  return kept(call.world, { ...updated(endpoint, call.input), updatedAt: call.world.tick() })
}

function rotateSecret({ world, id }: Call): Endpoint {
  const endpoint = found(world, 'endpoint', id, 'WEBHOOK_ENDPOINT_NOT_FOUND')
  return world.update('endpoint', endpoint, { secret: world.makeId('whsec') })
}

const secretView = (endpoint: Endpoint): object => ({ ...endpointView(endpoint), secret: endpoint.secret })

// Plain sums over what was paid

type About = (record: Pick<Payment | Subscription, 'customerId' | 'productId'>) => boolean

const paidPayments = (world: World): readonly Payment[] =>
  [...world.each('payment')].filter(({ paymentReceivedAt }) => paymentReceivedAt !== null)

const net = ({ merchantNetCents, refundedAmountCents, chargebackAt }: Payment): number =>
  chargebackAt === null ? merchantNetCents - refundedAmountCents : 0

const total = (payments: readonly Payment[], cents: (payment: Payment) => number): number =>
  payments.reduce((sum, payment) => sum + cents(payment), 0)

const SUMMED = ['grossAmountCents', 'refundedAmountCents', 'vatAmountCents', 'platformFeeCents'] as const

function sumsOf(world: World, isAbout: About): object {
  const paid = paidPayments(world).filter(isAbout)
  const revenue = CURRENCIES.map((currency) => {
    const own = paid.filter((payment) => payment.currency === currency)
    const sums = SUMMED.map((name) => [name, total(own, (payment) => payment[name])] as const)
    return { currency, ...Object.fromEntries(sums), netAmountCents: total(own, net) }
  })
  const active = [...world.each('subscription')].filter((one) => isRunning(one) && isAbout(one))
  return { payments: paid.length, activeSubscriptions: active.length, revenue }
}

/** What is the merchant's: settled, and still to settle. */
function balances(world: World): object {
  const paid = paidPayments(world)
  const balance = (currency: string, isCrypto: boolean) => {
    const own = paid.filter((one) => one.currency === currency && (one.deposit !== null) === isCrypto)
    const settled = own.filter(({ paymentSettledAt }) => paymentSettledAt !== null)
    const availableCents = total(settled, net)
    return { availableCents, pendingCents: total(own, net) - availableCents }
  }
  const balances = CURRENCIES.map((currency) => {
    return { currency, card: balance(currency, false), crypto: balance(currency, true) }
  })
  return { balances }
}

export const MERCHANT_OPERATIONS = [
  operation('GET /v3/balance', {}, ({ world }) => balances(world)),
  operation('GET /v3/analytics', {}, ({ world }) => sumsOf(world, () => true)),
  operation('GET /v3/products/:id/analytics', {}, productNamed, ({ id }, world) => ({
    productId: id,
    ...sumsOf(world, ({ productId }) => productId === id),
  })),
  operation('GET /v3/customers/:id/analytics', {}, customerNamed, ({ id }, world) => ({
    customerId: id,
    ...sumsOf(world, ({ customerId }) => customerId === id),
  })),
  operation('POST /v3/webhook-endpoints', { status: 201, input: ENDPOINT }, register, secretView),
  operation('PATCH /v3/webhook-endpoints/:id', { input: CHANGES }, updateEndpoint, endpointView),
  operation('POST /v3/webhook-endpoints/:id/rotate-secret', {}, rotateSecret, secretView),
  operation('GET /v3/notification-preferences', {}, ({ world: { settings } }) => ({
    merchantOfRecord: settings.merchantOfRecord,
    customerEmails: { receipt: true, renewalReminder: true, paymentFailed: true },
    merchantEmails: { newSubscription: true, chargeback: true, payout: true },
  })),
  operation('GET /health', {}, () => ({ status: 'ok' })),
]
