import { z } from 'zod'
import { refuse } from '../codes.js'
import { tellCustomer, tellMethod } from '../events.js'
import { CARD_METHODS, type Customer, type SavedMethod } from '../model.js'
import { outcomeOfToken } from '../paying.js'
import { attachMethod } from '../subscription.js'
import { customerPaymentView, legacyCustomerView } from '../views-v2.js'
import { customerView, iso, METHOD_FIELDS, shown } from '../views-v3.js'
import type { World } from '../world.js'
import { EMAIL, PAGE_QUERY, TEXT } from './fields.js'
import {
  type Call,
  type CallOf,
  found,
  listing,
  named,
  type Operation,
  operation,
  recordPage,
} from './operation.js'

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

const isSaved = ({ revokedAt }: SavedMethod): boolean => revokedAt === null
const methodView = (method: SavedMethod): object => shown(method, METHOD_FIELDS)

const SETUP = z.object({
  customerId: TEXT,
  method: z.enum(CARD_METHODS).default('CARD'),
  card: z.object({ tokenizedInstrument: TEXT }).optional(),
})

function setUp({ world, body }: CallOf<typeof SETUP>): object {
  const customer = found(world, 'customer', body.customerId, 'SETUP_INTENT_CUSTOMER_NOT_FOUND')
  const outcome = outcomeOfToken(body.card?.tokenizedInstrument ?? '')
  const isSaved = outcome === 'success' || outcome === '3ds_required'
  const paymentMethodId = isSaved ? attachMethod(world, customer.id, body.method).id : null
  // The newest card is the one that is charged from now on.
  if (isSaved) world.put('customer', { ...customer, card: outcome })
  const id = world.makeId('seti')
  const status = isSaved ? 'SUCCEEDED' : 'FAILED'
  const createdAt = iso(world.tick())
  return { id, customerId: customer.id, status, paymentMethodId, clientSecret: `secret_${id}`, createdAt }
}

const SEARCH = z.object({ email: EMAIL.toLowerCase() })
const SEARCHED_PAGE = PAGE_QUERY.extend(SEARCH.shape)

function searched(call: CallOf<z.ZodType, typeof SEARCHED_PAGE>): object {
  const customer = call.world.list('customer', { email: call.query.email }).find(isThere)
  if (customer === undefined) return refuse('CUSTOMER_NOT_FOUND', 'No customer has this email.')
  const { data, pagination } = recordPage(call, 'payment', customerPaymentView, { customerId: customer.id })
  return { ...legacyCustomerView(customer), payments: data, pagination }
}

export const CUSTOMER_OPERATIONS: readonly Operation[] = [
  listing('GET /v3/customers', 'customer', customerView, {
    query: SEARCH.partial(),
    where: ({ query: { email } }) => ({ email }),
    only: () => isThere,
  }),
  operation('GET /v3/customers/:id', {}, customerNamed, customerView),
  operation('DELETE /v3/customers/:id', {}, deleteCustomer),
  listing('GET /v3/customers/:id/payment-methods', 'method', methodView, {
    where: (call) => ({ customerId: customerNamed(call).id }),
    only: () => isSaved,
  }),
  operation('DELETE /v3/customers/:id/payment-methods/:pmId', { status: 204 }, (call) =>
    revoke(call.world, methodNamed(call)),
  ),
  operation('POST /v3/setup-intents', { status: 201, body: SETUP }, setUp),

  listing('GET /api/customer', 'customer', legacyCustomerView, { only: () => isThere }),
  operation('GET /api/customer/search', { query: SEARCHED_PAGE }, searched),
  operation('GET /api/customer/:customerId', {}, customerNamed, legacyCustomerView),
]
