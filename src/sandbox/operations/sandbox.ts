/* What the documents leave to people, clocks and banks. */

import { z } from 'zod'
import { invalidFields, isCode, ServiceError } from '../codes.js'
import {
  DAY_MS,
  DELIVERY_STATUSES,
  DEPOSIT_WARNINGS,
  type Delivery,
  METHODS,
  OUTCOMES,
  type Payment,
} from '../model.js'
import { customerByEmail, followed, pay, updateCustomer } from '../paying.js'
import { capture, chargeBack, refund, settle, voidPayment } from '../payment.js'
import { accessAt } from '../truth.js'
import { customerView, iso, shown } from '../views-v3.js'
import type { World } from '../world.js'
import { customerNamed } from './customers.js'
import {
  CURSOR_QUERY,
  cursorPage,
  DURATION_MS,
  found,
  given,
  INSTANT,
  longOperation,
  NAME,
  type Operation,
  operation,
  TEXT,
} from './operation.js'
import { paymentNamed, showPayment } from './payments.js'
import { COUNTRY } from './purchase.js'

/** Ten years: more is a slip of the hand. */
const FURTHEST_MS = 3_660 * DAY_MS

/** Something done to a payment; answers once what it says is delivered, or has failed for now. */
function paymentAct<Body extends z.ZodType>(
  name: string,
  body: Body,
  work: (world: World, payment: Payment, body: z.output<Body>) => Payment,
): Operation {
  return longOperation(
    `POST /sandbox/payments/:id/${name}`,
    async ({ act, courier }, { params, body }, keep) => {
      const data = act((world) => {
        const done = showPayment(world, work(world, paymentNamed(world, params.id), body))
        keep(world, done)
        return done
      })
      await courier.drain()
      return data
    },
    { body },
  )
}

const PAY = z.object({
  method: z.enum(METHODS).optional(),
  outcome: z.enum(OUTCOMES).optional(),
  confirmations: z.int().min(0).max(1000).optional(),
  share: z.number().gt(0).max(10).optional(),
  warning: z.enum(DEPOSIT_WARNINGS).optional(),
  email: z.email().max(255).optional(),
  crypto: z.object({ chainId: z.int().optional(), assetId: z.string().max(20).optional() }).optional(),
})

const ADVANCE = z
  .object({ by: DURATION_MS.optional(), to: INSTANT.optional() })
  .refine(({ by, to }) => (by === undefined) !== (to === undefined), {
    path: ['by'],
    message: 'send by or to',
  })

const CUSTOMER = z
  .object({ email: z.email().max(255), name: NAME.max(200), country: COUNTRY })
  .extend({ communityId: TEXT, messengerId: TEXT, communityUsername: TEXT, messengerUsername: TEXT })
  .partial()

const CHANCE = z.number().min(0).max(1).default(0)
const FAULTS = z.object({
  ...{ drop: CHANCE, duplicate: CHANCE, damage: CHANCE },
  delay: DURATION_MS.default(0),
  reorder: z.boolean().default(false),
  endpoint: TEXT.nullable().default(null),
  answers: z
    .array(
      z.object({
        code: z.string().refine(isCode, 'is not a documented code').nullable().default(null),
        operation: z.string().max(255).nullable().default(null),
        times: z.int().min(1).max(1_000_000).default(1),
        slowMs: z.int().min(0).max(60_000).default(0),
      }),
    )
    .optional(),
})

function setFaults(world: World, { answers, delay: delayMs, ...fault }: z.output<typeof FAULTS>): object {
  if (fault.endpoint !== null) found(world, 'endpoint', fault.endpoint, 'WEBHOOK_ENDPOINT_NOT_FOUND')
  const others = world.settings.faults.filter(({ endpoint }) => endpoint !== fault.endpoint)
  world.change({ faults: [...others, { ...fault, delayMs }], ...(answers && { answers }) })
  return showFaults(world)
}

function showFaults({ settings: { faults, answers } }: World): object {
  return {
    items: faults.map(({ delayMs, ...fault }) => ({ ...fault, delay: `${delayMs / 1000}s` })),
    answers,
  }
}

const showDelivery = (delivery: Delivery): object => ({
  ...shown(delivery, 'id eventId type status createdAt dueAt'),
  endpoint: delivery.endpointId,
  attempts: delivery.attempts.map(({ at, status, error }) => ({ at: iso(at), status, error })),
  event: JSON.parse(delivery.body),
})

export const SANDBOX_OPERATIONS: readonly Operation[] = [
  operation('GET /sandbox/clock', ({ now }) => ({ now: iso(now) })),
  longOperation(
    'POST /sandbox/clock/advance',
    async (engine, { body }, keep) => {
      const { now } = engine.world
      const to = body.to ?? now + (body.by ?? 0)
      if (to < now || to > now + FURTHEST_MS) {
        throw invalidFields({ field: 'to', message: `must be between ${iso(now)} and ten years later` })
      }
      await engine.advance(to)
      return engine.act((world) => {
        const data = { now: iso(world.now) }
        keep(world, data)
        return data
      })
    },
    { body: ADVANCE },
  ),
  paymentAct('pay', PAY, pay),
  paymentAct(
    'refund',
    z.object({ amountInCents: z.int().min(1).nullable().default(null) }),
    (world, payment, body) => refund(world, payment, body.amountInCents),
  ),
  paymentAct('chargeback', z.object({}), chargeBack),
  paymentAct('capture', z.object({}), (world, payment) => followed(world, capture(world, payment))),
  paymentAct('void', z.object({}), voidPayment),
  paymentAct(
    'settle',
    z.object({ outcome: z.enum(['success', 'failed']).default('success') }),
    (world, payment, body) => settle(world, payment, body.outcome),
  ),
  operation(
    'POST /sandbox/customers/:id/card',
    (world, { params, body }) => {
      const { id, card } = world.put('customer', { ...customerNamed(world, params.id), card: body.outcome })
      return { customerId: id, outcome: card }
    },
    { body: z.object({ outcome: z.enum(OUTCOMES) }) },
  ),
  operation(
    'POST /sandbox/customers',
    (world, { body: { email, name = null, country = null } }) => {
      const isKnown = world
        .list('customer', { email: email.toLowerCase() })
        .some(({ deletedAt }) => deletedAt === null)
      if (isKnown) throw new ServiceError('CUSTOMER_ALREADY_EXISTS', 'A customer has this email already.')
      return customerView(customerByEmail(world, email, name, country))
    },
    { status: 201, body: CUSTOMER.required({ email: true }) },
  ),
  operation(
    'PATCH /sandbox/customers/:id',
    (world, { params, body }) => {
      const customer = customerNamed(world, params.id)
      const changed = { ...customer, ...given(body) }
      const sharing = world.list('customer', { email: changed.email.toLowerCase() })
      if (sharing.some(({ id, deletedAt }) => id !== customer.id && deletedAt === null)) {
        throw new ServiceError('CUSTOMER_ALREADY_EXISTS', 'Another customer has this email.')
      }
      return customerView(updateCustomer(world, changed))
    },
    { body: CUSTOMER },
  ),
  operation('POST /sandbox/faults', (world, { body }) => setFaults(world, body), { body: FAULTS }),
  operation('GET /sandbox/faults', showFaults),
  operation('DELETE /sandbox/faults', (world) => {
    world.change({ faults: [], answers: [] })
    return showFaults(world)
  }),
  longOperation(
    'GET /sandbox/deliveries',
    async ({ world }, { query }) => {
      const where = { endpointId: query.endpoint, status: query.status }
      return cursorPage(query, (span) => world.placed('delivery', where, span), showDelivery)
    },
    {
      query: CURSOR_QUERY.extend({ endpoint: TEXT.optional(), status: z.enum(DELIVERY_STATUSES).optional() }),
    },
  ),
  longOperation('POST /sandbox/deliveries/:id/send', async ({ courier, act }, { params }) => {
    const delivery = act((world) => world.find('delivery', params.id ?? ''))
    if (delivery === undefined) throw new ServiceError('NOT_FOUND', `There is no delivery ${params.id}.`)
    return showDelivery(await courier.sendNow(delivery))
  }),
  operation(
    'GET /sandbox/truth',
    (world, { query }) => {
      const { at = world.now } = query
      if (at <= world.now) return { at: iso(at), access: accessAt(world, at) }
      throw invalidFields({
        field: 'at',
        message: `must not be after the sandbox's clock, ${iso(world.now)}`,
      })
    },
    { query: z.object({ at: INSTANT.optional() }) },
  ),
]
