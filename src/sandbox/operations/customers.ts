import { z } from 'zod'
import { refuse } from '../codes.js'
import { tellCustomer, tellMethod } from '../events.js'
import { CARD_METHODS, type Customer, type SavedMethod } from '../model.js'
import { outcomeOfToken } from '../paying.js'
import { attachMethod } from '../subscription.js'
import { customerPaymentView, legacyCustomerView } from '../views-v2.js'
import { customerView, iso, METHOD_FIELDS, shown } from '../views-v3.js'
import type { World } from '../world.js'
import { CURSOR_QUERY, EMAIL, PAGE_QUERY, TEXT } from './fields.js'
import { type Call, cursorPage, found, listing, named, numberedPage, operation } from './operation.js'

const isThere = ({ deletedAt }: Customer): boolean => deletedAt === null

/** @throws {ServiceError} `CUSTOMER_NOT_FOUND`, of one that was deleted too */
export function customerNamed(call: Call): Customer {
  const customer = named('customer', 'CUSTOMER_NOT_FOUND')(call)
  if (!isThere(customer)) refuse('CUSTOMER_NOT_FOUND', `The customer ${call.id} was deleted.`)
  return customer
}

function deleteCustomer(call: Call): object {
  const { world } = call
  const customer = customerNamed(call)
  const saved = world.list('method', { customerId: customer.id }).filter(isSaved)
  for (const method of saved) revoke(world, method)
  const at = world.tick()
  tellCustomer(world, 'deleted', world.put('customer', { ...customer, deletedAt: at, updatedAt: at }))
  return { id: customer.id, deleted: true }
}

function revoke(world: World, method: SavedMethod): void {
  const at = world.tick()
  tellMethod(world, 'detached', world.put('method', { ...method, revokedAt: at, updatedAt: at }))
}

function methodNamed(call: Call): SavedMethod {
  const { id: customerId } = customerNamed(call)
  const method = found(call.world, 'method', call.params.pmId ?? '', 'CUSTOMER_PAYMENT_METHOD_NOT_FOUND')
  if (method.customerId !== customerId) {
    refuse('CUSTOMER_PAYMENT_METHOD_NOT_FOUND', `${method.id} belongs to another customer.`)
  }
  if (method.revokedAt !== null) refuse('CUSTOMER_PAYMENT_METHOD_REVOKED', `${method.id} was revoked before.`)
  return method
}

const removeMethod = (call: Call): void => revoke(call.world, methodNamed(call))

const isSaved = ({ revokedAt }: SavedMethod): boolean => revokedAt === null
const methodView = (method: SavedMethod): object => shown(method, METHOD_FIELDS)

function savedMethods(call: Call<typeof CURSOR_QUERY>): object {
  const where = { customerId: customerNamed(call).id }
  return cursorPage(call.world, call.input, { kind: 'method', view: methodView, where, only: isSaved })
}

const SETUP = z.object({
  customerId: TEXT,
  method: z.enum(CARD_METHODS).default('CARD'),
  card: z.object({ tokenizedInstrument: TEXT }).optional(),
})

function setUp({ world, input }: Call<typeof SETUP>): object {
  const customer = found(world, 'customer', input.customerId, 'SETUP_INTENT_CUSTOMER_NOT_FOUND')
  const outcome = outcomeOfToken(input.card?.tokenizedInstrument ?? '')
  const isSaved = outcome === 'success' || outcome === '3ds_required'
  const paymentMethodId = isSaved ? attachMethod(world, customer.id, input.method).id : null
  // The newest card is the one that is charged from now on.
  if (isSaved) world.put('customer', { ...customer, card: outcome })
  const id = world.makeId('seti')
  const status = isSaved ? 'SUCCEEDED' : 'FAILED'
  const createdAt = iso(world.tick())
  return { id, customerId: customer.id, status, paymentMethodId, clientSecret: `secret_${id}`, createdAt }
}

const FILTERED = CURSOR_QUERY.extend({ email: EMAIL.toLowerCase().optional() })
const SEARCHED_PAGE = PAGE_QUERY.extend({ email: EMAIL.toLowerCase() })

function searched({ world, input }: Call<typeof SEARCHED_PAGE>): object {
  const customer = world.list('customer', { email: input.email }).find(isThere)
  if (customer === undefined) return refuse('CUSTOMER_NOT_FOUND', 'No customer has this email.')
  const list = { kind: 'payment', view: customerPaymentView, where: { customerId: customer.id } } as const
  const { data, pagination } = numberedPage(world, input, list)
  return { ...legacyCustomerView(customer), payments: data, pagination }
}

export const CUSTOMER_OPERATIONS = [
  operation('GET /v3/customers', { input: FILTERED }, ({ world, input }) =>
    cursorPage(world, input, {
      kind: 'customer',
      view: customerView,
      where: { email: input.email },
      only: isThere,
    }),
  ),
  operation('GET /v3/customers/:id', {}, customerNamed, customerView),
  operation('DELETE /v3/customers/:id', {}, deleteCustomer),
  operation('GET /v3/customers/:id/payment-methods', { input: CURSOR_QUERY }, savedMethods),
  operation('DELETE /v3/customers/:id/payment-methods/:pmId', { status: 204 }, removeMethod),
  operation('POST /v3/setup-intents', { status: 201, input: SETUP }, setUp),

  listing('GET /api/customer', { kind: 'customer', view: legacyCustomerView, only: isThere }),
  operation('GET /api/customer/search', { input: SEARCHED_PAGE }, searched),
  operation('GET /api/customer/:customerId', {}, customerNamed, legacyCustomerView),
]
