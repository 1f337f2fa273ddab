import { z } from 'zod'
import { formatInstant } from '../../provider/instant.js'
import { EMAIL, SETUP_INTENT } from '../../provider/requests.js'
import { refuse } from '../codes.js'
import { tellCustomer, tellMethod } from '../events.js'
import { CUSTOMER, type Customer, OUTCOMES, type SavedMethod } from '../model.js'
import { customerByEmail, findByEmail, updateCustomer } from '../paying.js'
import { outcomeOf } from '../payment.js'
import { attachMethod } from '../subscription.js'
import { customerPaymentView, legacyCustomerView } from '../views-v2.js'
import { customerView, methodView } from '../views-v3.js'
import type { World } from '../world.js'
import { CURSOR_QUERY, cursorPage, listing, numberedPage, PAGE_QUERY } from './lists.js'
import { actOn, type Call, changesOf, found, named, operation, updated } from './operation.js'

const isThere = ({ deletedAt }: Customer): boolean => deletedAt === null
const isSaved = ({ revokedAt }: SavedMethod): boolean => revokedAt === null

/** @throws {ServiceError} `CUSTOMER_NOT_FOUND`, of one that was deleted too */
export function customerNamed(call: Call): Customer {
  const customer = named('customer', 'CUSTOMER_NOT_FOUND')(call)
  if (!isThere(customer)) refuse('CUSTOMER_NOT_FOUND', `The customer ${call.id} was deleted.`)
  return customer
}
const onCustomer = actOn(customerNamed)

function assertFree(world: World, email: string, ownId?: string): void {
  const sharing = findByEmail(world, email)
  if (sharing !== undefined && sharing.id !== ownId) {
    refuse('CUSTOMER_ALREADY_EXISTS', 'Another customer has this email already.')
  }
}

function createCustomer({ world, input }: Call<typeof CUSTOMER>): Customer {
  assertFree(world, input.email)
  return customerByEmail(world, input)
}

function changeCustomer(world: World, customer: Customer, input: object): Customer {
  const changed = updated(customer, input)
  assertFree(world, changed.email, customer.id)
  return updateCustomer(world, changed)
}

function deleteCustomer(world: World, customer: Customer): object {
  const saved = world.list('method', { customerId: customer.id }).filter(isSaved)
  for (const method of saved) revoke(world, method)
  const deleted = world.update('customer', customer, (at) => ({ deletedAt: at }))
  tellCustomer(world, 'customer.deleted', deleted)
  return { id: customer.id, deleted: true }
}

function revoke(world: World, method: SavedMethod): void {
  const revoked = world.update('method', method, (at) => ({ revokedAt: at }))
  tellMethod(world, 'detached', revoked)
}

function methodNamed(call: Call): SavedMethod {
  const { id: customerId } = customerNamed(call)
  const method = found(call.world, 'method', call.params.pmId ?? '', 'CUSTOMER_PAYMENT_METHOD_NOT_FOUND')
  if (method.customerId !== customerId) {
    refuse('CUSTOMER_PAYMENT_METHOD_NOT_FOUND', `${method.id} belongs to another customer.`)
  }
  if (!isSaved(method)) refuse('CUSTOMER_PAYMENT_METHOD_REVOKED', `${method.id} was revoked before.`)
  return method
}

function setUp({ world, input }: Call<typeof SETUP_INTENT>): object {
  const customer = found(world, 'customer', input.customerId, 'SETUP_INTENT_CUSTOMER_NOT_FOUND')
  const outcome = outcomeOf(input.card?.tokenizedInstrument ?? '')
  const isTaken = outcome === 'success' || outcome === '3ds_required'
  const paymentMethodId = isTaken ? attachMethod(world, customer.id, input.method).id : null
  // The newest card is the one that is charged from now on.
  if (isTaken) world.put('customer', { ...customer, card: outcome })
  const id = world.makeId('seti')
  const status = isTaken ? 'SUCCEEDED' : 'FAILED'
  const createdAt = formatInstant(world.tick())
  return { id, customerId: customer.id, status, paymentMethodId, clientSecret: `secret_${id}`, createdAt }
}

const FILTERED = CURSOR_QUERY.extend({ email: EMAIL.toLowerCase().optional() })
const SEARCHED_PAGE = PAGE_QUERY.extend({ email: EMAIL.toLowerCase() })
const CHANGES = changesOf(CUSTOMER)
const OUTCOME = z.object({ outcome: z.enum(OUTCOMES) })

export const CUSTOMER_OPERATIONS = [
  operation('GET /v3/customers', { input: FILTERED }, ({ world, input }) => {
    const where = { email: input.email }
    return cursorPage(world, input, { kind: 'customer', view: customerView, where, only: isThere })
  }),
  operation('GET /v3/customers/:id', {}, customerNamed, customerView),
  onCustomer('DELETE /v3/customers/:id', {}, deleteCustomer),
  onCustomer('GET /v3/customers/:id/payment-methods', { input: CURSOR_QUERY }, (world, { id }, input) =>
    cursorPage(world, input, { kind: 'method', view: methodView, where: { customerId: id }, only: isSaved }),
  ),
  actOn(methodNamed)('DELETE /v3/customers/:id/payment-methods/:pmId', { status: 204 }, revoke),
  operation('POST /v3/setup-intents', { status: 201, input: SETUP_INTENT }, setUp),

  listing('GET /api/customer', { kind: 'customer', view: legacyCustomerView, only: isThere }),
  operation('GET /api/customer/search', { input: SEARCHED_PAGE }, ({ world, input }) => {
    const customer = findByEmail(world, input.email)
    if (customer === undefined) return refuse('CUSTOMER_NOT_FOUND', 'No customer has this email.')
    const list = { kind: 'payment', view: customerPaymentView, where: { customerId: customer.id } } as const
    const { data, pagination } = numberedPage(world, input, list)
    return { ...legacyCustomerView(customer), payments: data, pagination }
  }),
  operation('GET /api/customer/:customerId', {}, customerNamed, legacyCustomerView),

  operation('POST /sandbox/customers', { status: 201, input: CUSTOMER }, createCustomer, customerView),
  onCustomer('PATCH /sandbox/customers/:id', { input: CHANGES }, changeCustomer, customerView),
  onCustomer('POST /sandbox/customers/:id/card', { input: OUTCOME }, (world, customer, { outcome }) => {
    world.put('customer', { ...customer, card: outcome })
    return { customerId: customer.id, outcome }
  }),
]
