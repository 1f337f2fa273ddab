/* What the documents leave to people, clocks and banks. */

import { z } from 'zod'
import { refuse, refuseField } from '../codes.js'
import { CURSOR_QUERY, changesOf, DAY_MS, DURATION_MS, INSTANT, orNull, TEXT } from '../fields.js'
import { CUSTOMER, DELIVERY_STATUSES, type Delivery, FAULTS, OUTCOMES, type Payment } from '../model.js'
import { customerByEmail, findByEmail, followed, PAY, pay, updateCustomer } from '../paying.js'
import { capture, chargeBack, refund, settle, voidPayment } from '../payment.js'
import { accessAt } from '../truth.js'
import { customerView, iso, paymentView, shown } from '../views-v3.js'
import type { World } from '../world.js'
import { customerNamed } from './customers.js'
import { type Call, cursorPage, found, NOTHING, operation, updated } from './operation.js'
import { paymentNamed } from './payments.js'

/** Ten years: more is a slip of the hand. */
const FURTHEST_MS = 3_660 * DAY_MS

/** Something done to a payment. */
const paymentAct = <Input extends z.ZodType>(
  name: string,
  input: Input,
  work: (world: World, payment: Payment, input: z.output<Input>) => Payment,
) => {
  const act = (call: Call<Input>) => work(call.world, paymentNamed(call), call.input)
  return operation(`POST /sandbox/payments/:id/${name}`, { input }, act, paymentView)
}

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

const CUSTOMER_CHANGES = changesOf(CUSTOMER)
const CARD = z.object({ outcome: z.enum(OUTCOMES) })

function assertFree(world: World, email: string, ownId?: string): void {
  const sharing = findByEmail(world, email)
  if (sharing !== undefined && sharing.id !== ownId) {
    refuse('CUSTOMER_ALREADY_EXISTS', 'Another customer has this email already.')
  }
}

function createCustomer({ world, input }: Call<typeof CUSTOMER>) {
  assertFree(world, input.email)
  return customerByEmail(world, input)
}

function changeCustomer(call: Call<typeof CUSTOMER_CHANGES>) {
  const customer = customerNamed(call)
  const changed = updated(customer, call.input)
  assertFree(call.world, changed.email, customer.id)
  return updateCustomer(call.world, changed)
}

function setFaults({ world, input }: Call<typeof FAULTS>): void {
  const { answers, ...fault } = input
  if (fault.endpoint !== null) found(world, 'endpoint', fault.endpoint, 'WEBHOOK_ENDPOINT_NOT_FOUND')
  const others = world.settings.faults.filter(({ endpoint }) => endpoint !== fault.endpoint)
  world.change({ faults: [...others, fault], ...(answers && { answers }) })
}

function showFaults(_: unknown, { settings: { faults, answers } }: World): object {
  return { items: faults.map((fault) => ({ ...fault, delay: `${fault.delay / 1000}s` })), answers }
}

const DELIVERIES = CURSOR_QUERY.extend({
  endpoint: TEXT.optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
})

const deliveryNamed = ({ world, id }: Call) =>
  world.find('delivery', id) ?? refuse('NOT_FOUND', `There is no delivery ${id}.`)

const deliveryView = (delivery: Delivery): object => ({
  ...shown(delivery, 'id eventId type status createdAt dueAt'),
  endpoint: delivery.endpointId,
  attempts: delivery.attempts.map(({ at, status, error }) => ({ at: iso(at), status, error })),
  event: JSON.parse(delivery.event),
})

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
  operation('POST /sandbox/customers/:id/card', { input: CARD }, (call) => {
    const { id, card } = call.world.put('customer', { ...customerNamed(call), card: call.input.outcome })
    return { customerId: id, outcome: card }
  }),
  operation('GET /sandbox/faults', {}, () => {}, showFaults),
  operation('POST /sandbox/faults', { input: FAULTS }, setFaults, showFaults),
  operation(
    'DELETE /sandbox/faults',
    {},
    ({ world }) => world.change({ faults: [], answers: [] }),
    showFaults,
  ),
  operation('GET /sandbox/deliveries', { input: DELIVERIES }, ({ world, input }) => {
    const where = { endpointId: input.endpoint, status: input.status }
    return cursorPage(world, input, { kind: 'delivery', view: deliveryView, where })
  }),
  operation(
    'POST /sandbox/deliveries/:id/send',
    { before: (call) => call.courier.sendNow(deliveryNamed(call)) },
    deliveryNamed,
    deliveryView,
  ),
  operation('GET /sandbox/truth', { input: z.object({ at: INSTANT.optional() }) }, ({ world, input }) => {
    const { at = world.now } = input
    if (at > world.now) refuseField('at', `must not be after the sandbox's clock, ${iso(world.now)}`)
    return { at: iso(at), access: accessAt(world, at) }
  }),
]
