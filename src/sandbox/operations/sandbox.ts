/* What the documents leave to people, clocks and banks. */

import { z } from 'zod'
import { isServiceCode } from '../../provider/service-codes.js'
import { refuse, refuseField } from '../codes.js'
import { DAY_MS, DELIVERY_STATUSES, DEPOSIT_WARNINGS, METHODS, OUTCOMES, type Payment } from '../model.js'
import { customerByEmail, followed, pay, updateCustomer } from '../paying.js'
import { capture, chargeBack, refund, settle, voidPayment } from '../payment.js'
import { accessAt } from '../truth.js'
import { customerView, iso, paymentView, shown } from '../views-v3.js'
import type { World } from '../world.js'
import { customerNamed } from './customers.js'
import { COUNTRY, CRYPTO, CURSOR_QUERY, DURATION_MS, EMAIL, INSTANT, NAME, orNull, TEXT } from './fields.js'
import { type Call, found, NOTHING, operation, pageAfter, updated } from './operation.js'
import { paymentNamed } from './payments.js'

/** Ten years: more is a slip of the hand. */
const FURTHEST_MS = 3_660 * DAY_MS

/** Something done to a payment; answers once what it says is delivered, or has failed for now. */
function paymentAct<Input extends z.ZodType>(
  name: string,
  input: Input,
  work: (world: World, payment: Payment, input: z.output<Input>) => Payment,
) {
  const act = (call: Call<Input>) => work(call.world, paymentNamed(call), call.input)
  const after = ({ courier }: Call) => courier.drain()
  return operation(`POST /sandbox/payments/:id/${name}`, { input, after }, act, paymentView)
}

const PAY = z.object({
  method: z.enum(METHODS).optional(),
  outcome: z.enum(OUTCOMES).optional(),
  confirmations: z.int().min(0).max(1000).optional(),
  share: z.number().gt(0).max(10).optional(),
  warning: z.enum(DEPOSIT_WARNINGS).optional(),
  email: EMAIL.optional(),
  crypto: CRYPTO.optional(),
})
const REFUND = z.object({ amountInCents: orNull(z.int().min(1)) })
const SETTLE = z.object({ outcome: z.enum(['success', 'failed']).default('success') })

const ADVANCE = z
  .object({ by: DURATION_MS.optional(), to: INSTANT.optional() })
  .refine(({ by, to }) => (by === undefined) !== (to === undefined), {
    path: ['by'],
    message: 'send by or to',
  })

const clock = ({ world }: Call): object => ({ now: iso(world.now) })

async function advance({ world: { now }, input, advance }: Call<typeof ADVANCE>): Promise<void> {
  const to = input.to ?? now + (input.by ?? 0)
  if (to < now || to > now + FURTHEST_MS) refuseField('to', `must be between ${iso(now)} and ten years later`)
  await advance(to)
}

const CUSTOMER = z.object({
  email: EMAIL,
  name: NAME.max(200).optional(),
  country: COUNTRY.optional(),
  communityId: TEXT.optional(),
  messengerId: TEXT.optional(),
  communityUsername: TEXT.optional(),
  messengerUsername: TEXT.optional(),
})
const CUSTOMER_CHANGES = CUSTOMER.partial()

function assertFree(world: World, email: string, ownId?: string): void {
  const sharing = world.list('customer', { email: email.toLowerCase() })
  if (sharing.some(({ id, deletedAt }) => id !== ownId && deletedAt === null)) {
    refuse('CUSTOMER_ALREADY_EXISTS', 'Another customer has this email already.')
  }
}

function createCustomer({ world, input }: Call<typeof CUSTOMER>) {
  assertFree(world, input.email)
  return customerByEmail(world, input.email, input.name ?? null, input.country ?? null)
}

function changeCustomer(call: Call<typeof CUSTOMER_CHANGES>) {
  const customer = customerNamed(call)
  const changed = updated(customer, call.input)
  assertFree(call.world, changed.email, customer.id)
  return updateCustomer(call.world, changed)
}

const CARD = z.object({ outcome: z.enum(OUTCOMES) })

function changeCard(call: Call<typeof CARD>): object {
  const { id, card } = call.world.put('customer', { ...customerNamed(call), card: call.input.outcome })
  return { customerId: id, outcome: card }
}

const CHANCE = z.number().min(0).max(1).default(0)
const ANSWER = z.object({
  code: orNull(z.string().refine(isServiceCode, 'is not a documented code')),
  operation: orNull(z.string().max(255)),
  times: z.int().min(1).max(1_000_000).default(1),
  slowMs: z.int().min(0).max(60_000).default(0),
})
const FAULTS = z.object({
  drop: CHANCE,
  duplicate: CHANCE,
  damage: CHANCE,
  delay: DURATION_MS.default(0),
  reorder: z.boolean().default(false),
  endpoint: orNull(TEXT),
  answers: z.array(ANSWER).optional(),
})

function setFaults({ world, input }: Call<typeof FAULTS>): void {
  const { answers, delay: delayMs, ...fault } = input
  if (fault.endpoint !== null) found(world, 'endpoint', fault.endpoint, 'WEBHOOK_ENDPOINT_NOT_FOUND')
  const others = world.settings.faults.filter(({ endpoint }) => endpoint !== fault.endpoint)
  world.change({ faults: [...others, { ...fault, delayMs }], ...(answers && { answers }) })
}

const endFaults = ({ world }: Call): void => world.change({ faults: [], answers: [] })

function showFaults(_: unknown, { settings: { faults, answers } }: World): object {
  const items = faults.map(({ delayMs, ...fault }) => ({ ...fault, delay: `${delayMs / 1000}s` }))
  return { items, answers }
}

const DELIVERIES = CURSOR_QUERY.extend({
  endpoint: TEXT.optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
})

const deliveryNamed = ({ world, id }: Call) =>
  world.find('delivery', id) ?? refuse('NOT_FOUND', `There is no delivery ${id}.`)

const showDelivery = (delivery: ReturnType<typeof deliveryNamed>): object => ({
  ...shown(delivery, 'id eventId type status createdAt dueAt'),
  endpoint: delivery.endpointId,
  attempts: delivery.attempts.map(({ at, status, error }) => ({ at: iso(at), status, error })),
  event: JSON.parse(delivery.body),
})

const sendDelivery = (call: Call) => call.courier.sendNow(deliveryNamed(call))

export const SANDBOX_OPERATIONS = [
  operation('GET /sandbox/clock', {}, clock),
  operation('POST /sandbox/clock/advance', { input: ADVANCE, before: advance }, clock),
  paymentAct('pay', PAY, pay),
  paymentAct('refund', REFUND, (world, payment, { amountInCents }) => refund(world, payment, amountInCents)),
  paymentAct('chargeback', NOTHING, chargeBack),
  paymentAct('capture', NOTHING, (world, payment) => followed(world, capture(world, payment))),
  paymentAct('void', NOTHING, voidPayment),
  paymentAct('settle', SETTLE, (world, payment, { outcome }) => settle(world, payment, outcome)),
  operation('POST /sandbox/customers', { status: 201, input: CUSTOMER }, createCustomer, customerView),
  operation('PATCH /sandbox/customers/:id', { input: CUSTOMER_CHANGES }, changeCustomer, customerView),
  operation('POST /sandbox/customers/:id/card', { input: CARD }, changeCard),
  operation('GET /sandbox/faults', {}, ({ world }) => world, showFaults),
  operation('POST /sandbox/faults', { input: FAULTS }, setFaults, showFaults),
  operation('DELETE /sandbox/faults', {}, endFaults, showFaults),
  operation('GET /sandbox/deliveries', { input: DELIVERIES }, ({ world, input }) => {
    const where = { endpointId: input.endpoint, status: input.status }
    return pageAfter(input, (span) => world.placed('delivery', where, span), showDelivery)
  }),
  operation('POST /sandbox/deliveries/:id/send', { before: sendDelivery }, deliveryNamed, showDelivery),
  operation('GET /sandbox/truth', { input: z.object({ at: INSTANT.optional() }) }, ({ world, input }) => {
    const { at = world.now } = input
    if (at > world.now) refuseField('at', `must not be after the sandbox's clock, ${iso(world.now)}`)
    return { at: iso(at), access: accessAt(world, at) }
  }),
]
