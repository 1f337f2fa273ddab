import { z } from 'zod'
import { ServiceError } from '../codes.js'
import { tellCustomer, tellMethod } from '../events.js'
import { CARD_METHODS, type Customer, type SavedMethod } from '../model.js'
import { outcomeOfToken } from '../paying.js'
import { attachMethod } from '../subscription.js'
import { customerPaymentView, legacyCustomerView } from '../views-v2.js'
import { customerView, iso, methodView } from '../views-v3.js'
import type { World } from '../world.js'
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
import { sumsOf } from './sums.js'

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
  const deleted = world.put('customer', { ...customer, deletedAt: at, updatedAt: at })
  tellCustomer(world, 'deleted', deleted)
  return { id: deleted.id, deleted: true }
}

function revoke(world: World, method: SavedMethod): void {
  const at = world.tick()
  tellMethod(world, 'detached', world.put('method', { ...method, revokedAt: at, updatedAt: at }))
}

/** The customers that are there, by email where the query names one. */
function listed(world: World, email: string | undefined) {
  return world
    .placed('customer', { email: email?.toLowerCase() }, {})
    .filter(({ item }) => item.deletedAt === null)
}

const EMAIL_QUERY = PAGE_QUERY.extend({ email: z.email() })

export const CUSTOMER_OPERATIONS: readonly Operation[] = [
  operation(
    'GET /v3/customers',
    { about: 'list customers', query: CURSOR_QUERY.extend({ email: z.email().optional() }) },
    (world, { query }) =>
      cursorPage(
        query,
        ({ before = Number.POSITIVE_INFINITY, limit }) =>
          listed(world, query.email)
            .filter(({ place }) => place < before)
            .slice(0, limit),
        customerView,
      ),
  ),
  operation('GET /v3/customers/:id', { about: 'get customer' }, (world, { params }) =>
    customerView(customerNamed(world, params.id)),
  ),
  operation('DELETE /v3/customers/:id', { about: 'delete customer' }, (world, { params }) =>
    deleteCustomer(world, customerNamed(world, params.id)),
  ),
  operation(
    'GET /v3/customers/:id/payment-methods',
    { about: 'list saved payment methods', query: CURSOR_QUERY },
    (world, { params, query }) => {
      const { id } = customerNamed(world, params.id)
      return cursorPage(
        query,
        ({ before, limit }) =>
          world
            .placed('method', { customerId: id }, { before })
            .filter(({ item }) => item.revokedAt === null)
            .slice(0, limit),
        methodView,
      )
    },
  ),
  operation(
    'DELETE /v3/customers/:id/payment-methods/:pmId',
    { about: 'revoke a saved method', status: 204 },
    (world, { params }) => {
      const customer = customerNamed(world, params.id)
      const method = found(world, 'method', params.pmId, 'CUSTOMER_PAYMENT_METHOD_NOT_FOUND')
      if (method.customerId !== customer.id) {
        throw new ServiceError(
          'CUSTOMER_PAYMENT_METHOD_NOT_FOUND',
          `${method.id} belongs to another customer.`,
        )
      }
      if (method.revokedAt !== null) {
        throw new ServiceError('CUSTOMER_PAYMENT_METHOD_REVOKED', `${method.id} was revoked before.`)
      }
      revoke(world, method)
    },
  ),
  operation('GET /v3/customers/:id/analytics', { about: 'customer analytics' }, (world, { params }) => {
    const { id } = customerNamed(world, params.id)
    const about = ({ customerId }: { readonly customerId: string | null }) => customerId === id
    return { customerId: id, ...sumsOf(world, about) }
  }),
  operation(
    'POST /v3/setup-intents',
    {
      about: 'save a customer payment method for later off-session charges',
      status: 201,
      body: z.object({
        customerId: TEXT,
        method: z.enum(CARD_METHODS).default('CARD'),
        card: z.object({ tokenizedInstrument: TEXT }).optional(),
      }),
    },
    (world, { body }) => {
      const customer = found(world, 'customer', body.customerId, 'SETUP_INTENT_CUSTOMER_NOT_FOUND')
      const outcome = outcomeOfToken(body.card?.tokenizedInstrument ?? '')
      const isSaved = outcome === 'success' || outcome === '3ds_required'
      const method = isSaved ? attachMethod(world, customer.id, body.method) : null
      // The newest card is the one that is charged from now on.
      if (isSaved) world.put('customer', { ...customer, card: outcome })
      const at = world.tick()
      const intent = world.put('intent', {
        ...{ id: world.makeId('seti'), customerId: customer.id, status: isSaved ? 'SUCCEEDED' : 'FAILED' },
        ...{ methodId: method?.id ?? null, createdAt: at, updatedAt: at },
      })
      const { id, status, methodId, createdAt } = intent
      const clientSecret = `secret_${id}`
      return {
        id,
        customerId: customer.id,
        status,
        paymentMethodId: methodId,
        clientSecret,
        createdAt: iso(createdAt),
      }
    },
  ),

  operation('GET /api/customer', { about: 'list customers', query: PAGE_QUERY }, (world, { query }) => {
    const all = listed(world, undefined).map(({ item }) => item)
    const shown = all.slice((query.page - 1) * query.limit, query.page * query.limit)
    return { data: shown.map(legacyCustomerView), pagination: pagination(query, all.length) }
  }),
  operation(
    'GET /api/customer/search',
    { about: 'find customer by email', query: EMAIL_QUERY },
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
  ),
  operation('GET /api/customer/:customerId', { about: 'get customer' }, (world, { params }) =>
    legacyCustomerView(customerNamed(world, params.customerId)),
  ),
]
