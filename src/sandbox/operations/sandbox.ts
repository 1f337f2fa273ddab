/* What the documents leave to people, clocks and banks. */

import { z } from 'zod'
import { invalidFields, isCode, ServiceError } from '../codes.js'
import {
  CARD_OUTCOMES,
  DELIVERY_STATUSES,
  DEPOSIT_WARNINGS,
  type Delivery,
  METHODS,
  type Payment,
} from '../model.js'
import { followed, pay, updateCustomer } from '../paying.js'
import { capture, chargeBack, refund, settle, voidPayment } from '../payment.js'
import { accessAt } from '../truth.js'
import { customerView, iso } from '../views-v3.js'
import type { World } from '../world.js'
import { customerNamed } from './customers.js'
import {
  assertSome,
  CURSOR_QUERY,
  cursorPage,
  DURATION_MS,
  found,
  INSTANT,
  longOperation,
  NAME,
  type Operation,
  operation,
  TEXT,
} from './operation.js'
import { paymentNamed, showPayment } from './payments.js'

/** Ten years: more is a slip of the hand. */
const FURTHEST_MS = 3_660 * 24 * 60 * 60 * 1000

/** Something done to a payment; answers once what it says is delivered, or has failed for now. */
function paymentAct<Body extends z.ZodType>(
  name: string,
  about: string,
  body: Body,
  work: (world: World, payment: Payment, body: z.output<Body>) => Payment,
): Operation {
  return longOperation(
    `POST /sandbox/payments/:id/${name}`,
    { about, body },
    async ({ act, courier }, { params, body }, keep) => {
      const data = act((world) => {
        const payment = work(world, paymentNamed(world, params.id), body)
        const shown = showPayment(world, payment)
        keep(world, shown)
        return shown
      })
      await courier.drain()
      return data
    },
  )
}

const PAY = z.object({
  method: z.enum(METHODS).optional(),
  outcome: z.enum(CARD_OUTCOMES).optional(),
  confirmations: z.int().min(0).max(1000).optional(),
  share: z.number().gt(0).max(10).optional(),
  warning: z.enum(DEPOSIT_WARNINGS).optional(),
  email: z.email().max(255).optional(),
  crypto: z.object({ chainId: z.int().optional(), assetId: z.string().max(20).optional() }).optional(),
})

const CHANCE = z.number().min(0).max(1)
const FAULTS = z.object({
  drop: CHANCE.default(0),
  duplicate: CHANCE.default(0),
  damage: CHANCE.default(0),
  delay: DURATION_MS.default(0),
  reorder: z.boolean().default(false),
  endpoint: TEXT.optional(),
  answers: z
    .array(
      z.object({
        code: z.string().refine(isCode, 'is not a documented code').nullish(),
        operation: z.string().max(255).nullish(),
        times: z.int().min(1).max(1_000_000).default(1),
        slowMs: z.int().min(0).max(60_000).default(0),
      }),
    )
    .optional(),
})

function setFaults(
  world: World,
  { endpoint = undefined, answers, delay, ...rest }: z.output<typeof FAULTS>,
): object {
  if (endpoint !== undefined) found(world, 'endpoint', endpoint, 'WEBHOOK_ENDPOINT_NOT_FOUND')
  const fault = { ...rest, delayMs: delay, endpoint: endpoint ?? null }
  const others = world.settings.faults.filter((one) => one.endpoint !== fault.endpoint)
  world.change({
    faults: [...others, fault],
    ...(answers && {
      answers: answers.map(({ code = null, operation: words = null, ...one }) => ({
        ...one,
        code,
        operation: words,
      })),
    }),
  })
  return showFaults(world)
}

function showFaults({ settings }: World): object {
  const items = settings.faults.map(({ delayMs, ...fault }) => ({ ...fault, delay: `${delayMs / 1000}s` }))
  return { items, answers: settings.answers }
}

const showDelivery = ({ endpointId, eventId, isDoubled, isDamaged, ...delivery }: Delivery): object => ({
  id: delivery.id,
  endpoint: endpointId,
  eventId,
  type: delivery.type,
  status: delivery.status,
  createdAt: iso(delivery.createdAt),
  dueAt: iso(delivery.dueAt),
  attempts: delivery.attempts.map(({ at, status, error }) => ({ at: iso(at), status, error })),
  event: JSON.parse(delivery.body),
})

export const SANDBOX_OPERATIONS: readonly Operation[] = [
  operation('GET /sandbox/clock', { about: 'the time in the sandbox' }, ({ now }) => ({ now: iso(now) })),
  longOperation(
    'POST /sandbox/clock/advance',
    {
      about: 'move the clock; answers once all that fell due is done and delivered, or given up',
      body: z
        .object({ by: DURATION_MS.optional(), to: INSTANT.optional() })
        .refine(({ by, to }) => (by === undefined) !== (to === undefined), {
          path: ['by'],
          message: 'send by or to',
        }),
    },
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
  ),
  paymentAct('pay', 'what a buyer does at checkout, or a deposit', PAY, pay),
  paymentAct(
    'refund',
    'what the dashboard does',
    z.object({ amountInCents: z.int().min(1).optional() }),
    (world, payment, { amountInCents }) => refund(world, payment, amountInCents ?? null),
  ),
  paymentAct('chargeback', 'what a bank does', z.object({}), chargeBack),
  paymentAct('capture', 'capture an authorized payment', z.object({}), (world, payment) =>
    followed(world, capture(world, payment)),
  ),
  paymentAct('void', 'void an authorized payment', z.object({}), voidPayment),
  paymentAct(
    'settle',
    'pay it out to the merchant',
    z.object({ outcome: z.enum(['success', 'failed']).default('success') }),
    (world, payment, { outcome }) => settle(world, payment, outcome),
  ),
  operation(
    'POST /sandbox/customers/:id/card',
    { about: 'what the saved card does from now on', body: z.object({ outcome: z.enum(CARD_OUTCOMES) }) },
    (world, { params, body }) => {
      const customer = customerNamed(world, params.id)
      world.put('customer', { ...customer, card: body.outcome })
      return { customerId: customer.id, outcome: body.outcome }
    },
  ),
  operation(
    'PATCH /sandbox/customers/:id',
    {
      about: 'what a customer changes about themselves',
      body: z.object({
        email: z.email().max(255).optional(),
        name: NAME.max(200).optional(),
        country: z
          .string()
          .regex(/^[A-Z]{2}$/, 'must be two capital letters')
          .optional(),
        communityId: TEXT.optional(),
        messengerId: TEXT.optional(),
        communityUsername: TEXT.optional(),
        messengerUsername: TEXT.optional(),
      }),
    },
    (world, { params, body }) => {
      const customer = customerNamed(world, params.id)
      assertSome(body)
      const isTaken = world
        .list('customer', { email: body.email?.toLowerCase() ?? '' })
        .some(({ id }) => id !== customer.id)
      if (isTaken) throw new ServiceError('CUSTOMER_ALREADY_EXISTS', 'Another customer has this email.')
      const given = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
      return customerView(updateCustomer(world, { ...customer, ...given }))
    },
  ),
  operation(
    'POST /sandbox/faults',
    { about: 'faults of delivery, and answers on request', body: FAULTS },
    (world, { body }) => setFaults(world, body),
  ),
  operation('GET /sandbox/faults', { about: 'the faults in force' }, showFaults),
  operation('DELETE /sandbox/faults', { about: 'end all faults' }, (world) => {
    world.change({ faults: [], answers: [] })
    return showFaults(world)
  }),
  longOperation(
    'GET /sandbox/deliveries',
    {
      about: 'one for each event and endpoint, with its attempts',
      query: CURSOR_QUERY.extend({ endpoint: TEXT.optional(), status: z.enum(DELIVERY_STATUSES).optional() }),
    },
    async ({ deliveries }, { query }) => {
      const where = { endpointId: query.endpoint, status: query.status }
      return cursorPage(query, (span) => deliveries.listDeliveries(where, span), showDelivery)
    },
  ),
  longOperation(
    'POST /sandbox/deliveries/:id/send',
    { about: 'send one now, also one that was dropped' },
    async ({ courier, deliveries }, { params }) => {
      const delivery = deliveries.findDelivery(params.id ?? '')
      if (delivery === undefined) throw new ServiceError('NOT_FOUND', `There is no delivery ${params.id}.`)
      return showDelivery(await courier.sendNow(delivery))
    },
  ),
  operation(
    'GET /sandbox/truth',
    { about: 'who has access to what', query: z.object({ at: INSTANT.optional() }) },
    (world, { query }) => {
      const at = query.at ?? world.now
      if (at > world.now) {
        throw invalidFields({
          field: 'at',
          message: `must not be after the sandbox's clock, ${iso(world.now)}`,
        })
      }
      return { at: iso(at), access: accessAt(world, at) }
    },
  ),
]
