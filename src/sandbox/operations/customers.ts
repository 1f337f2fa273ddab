import { z } from 'zod'
import { ServiceError } from '../codes.js'
import { tellCustomer, tellMethod } from '../events.js'
import { CARD_METHODS, type Customer, type SavedMethod } from '../model.js'
import { outcomeOfToken } from '../paying.js'
import { attachMethod } from '../subscription.js'
import { customerPaymentView, legacyCustomerView } from '../views-v2.js'
import { customerView, iso, METHOD_FIELDS, shown } from '../views-v3.js'
import type { World } from '../world.js'
import { sumsOf } from './merchant.js'
import {
  CURSOR_QUERY,
  cursorPage,
  found,
  type Operation,
  operation,
  PAGE_QUERY,
  pagination,
  TEXT,
} from './operation.js'

/** @throws {ServiceError} `CUSTOMER_NOT_FOUND`, of one that was deleted too */
export function customerNamed(world: World, id: string | undefined): Customer {
  const customer = found(world, 'customer', id, 'CUSTOMER_NOT_FOUND')
  if (customer.deletedAt === null) return customer
  throw new ServiceError('CUSTOMER_NOT_FOUND', `The customer ${id} was deleted.`)
}

function deleteCustomer(world: World, customer: Customer): object {
  for (const method of world.list('method', { customerId: customer.id })) {
    if (method.revokedAt === null) revoke(world, method)
  }
  const at = world.tick()
  tellCustomer(world, 'deleted', world.put('customer', { ...customer, deletedAt: at, updatedAt: at }))
  return { id: customer.id, deleted: true }
}

function revoke(world: World, method: SavedMethod): void {
  const at = world.tick()
  tellMethod(world, 'detached', world.put('method', { ...method, revokedAt: at, updatedAt: at }))
}

function methodNamed(world: World, customer: Customer, id: string | undefined): SavedMethod {
  const method = found(world, 'method', id, 'CUSTOMER_PAYMENT_METHOD_NOT_FOUND')
  if (method.customerId !== customer.id) {
    throw new ServiceError('CUSTOMER_PAYMENT_METHOD_NOT_FOUND', `${id} belongs to another customer.`)
  }
  if (method.revokedAt === null) return method
  throw new ServiceError('CUSTOMER_PAYMENT_METHOD_REVOKED', `${id} was revoked before.`)
}

/** The customers that are there, by email where the query names one. */
function listed(world: World, email?: string, before?: number) {
  return world.placed('customer', { email }, { before }).filter(({ item }) => item.deletedAt === null)
}

const EMAIL = z.email().toLowerCase()
const SETUP = z.object({
  customerId: TEXT,
  method: z.enum(CARD_METHODS).default('CARD'),
  card: z.object({ tokenizedInstrument: TEXT }).optional(),
})

export const CUSTOMER_OPERATIONS: readonly Operation[] = [
  operation(
    'GET /v3/customers',
    (world, { query }) => cursorPage(query, ({ before }) => listed(world, query.email, before), customerView),
    { query: CURSOR_QUERY.extend({ email: EMAIL.optional() }) },
  ),
  operation('GET /v3/customers/:id', (world, { params }) => customerView(customerNamed(world, params.id))),
  operation('DELETE /v3/customers/:id', (world, { params }) =>
    deleteCustomer(world, customerNamed(world, params.id)),
  ),
  operation(
    'GET /v3/customers/:id/payment-methods',
    (world, { params, query }) => {
      const { id: customerId } = customerNamed(world, params.id)
      const saved = (before: number | undefined) =>
        world.placed('method', { customerId }, { before }).filter(({ item }) => item.revokedAt === null)
      return cursorPage(
        query,
        ({ before }) => saved(before),
        (method) => shown(method, METHOD_FIELDS),
      )
    },
    { query: CURSOR_QUERY },
  ),
  operation(
    'DELETE /v3/customers/:id/payment-methods/:pmId',
    (world, { params }) => revoke(world, methodNamed(world, customerNamed(world, params.id), params.pmId)),
    { status: 204 },
  ),
  operation('GET /v3/customers/:id/analytics', (world, { params }) => {
    const { id } = customerNamed(world, params.id)
    return { customerId: id, ...sumsOf(world, ({ customerId }) => customerId === id) }
  }),
  operation(
    'POST /v3/setup-intents',
    (world, { body }) => {
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
    },
    { status: 201, body: SETUP },
  ),

  operation(
    'GET /api/customer',
    (world, { query }) => {
      const all = listed(world).map(({ item }) => item)
      const data = all.slice((query.page - 1) * query.limit, query.page * query.limit).map(legacyCustomerView)
      return { data, pagination: pagination(query, all.length) }
    },
    { query: PAGE_QUERY },
  ),
  operation(
    'GET /api/customer/search',
    (world, { query }) => {
      const [first] = listed(world, query.email)
      if (first === undefined) throw new ServiceError('CUSTOMER_NOT_FOUND', 'No customer has this email.')
      const where = { customerId: first.item.id }
      const payments = world.list('payment', where, {
        limit: query.limit,
        offset: (query.page - 1) * query.limit,
      })
      return {
        ...legacyCustomerView(first.item),
        payments: payments.map(customerPaymentView),
        pagination: pagination(query, world.count('payment', where)),
      }
    },
    { query: PAGE_QUERY.extend({ email: EMAIL }) },
  ),
  operation('GET /api/customer/:customerId', (world, { params }) =>
    legacyCustomerView(customerNamed(world, params.customerId)),
  ),
]
