import type { Logger } from 'pino'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { CustomerLookup } from '../store/customers.js'
import { readJson, requireJson } from './body.js'
import { checkEntitlements } from './check-entitlements.js'
import { type CustomerDeps, idSchema, readQuestion } from './customer-questions.js'
import { accessJson, changeJson, customerJson, entitlementJson } from './entitlement-json.js'
import { type EraseDeps, eraseCustomer } from './erase-customer.js'
import type { MountedPath } from './mount.js'
import {
  ENVIRONMENT_ONLY,
  invalidParameter,
  type Page,
  pageJson,
  readInstant,
  readLimit,
  readPage,
  readParameter,
  withOneMore,
} from './query.js'
import { createRoute, onlyPost, requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson, sendTagged } from './send.js'

const PAGE = ['environment', 'limit', 'cursor'] as const
const PAGE_AT = ['environment', 'at', 'limit', 'cursor'] as const
const PAGE_OF_REFERENCE = ['environment', 'externalRef', 'at', 'limit', 'cursor'] as const

/** The routes that find customers, tell what is known of them and how their access changed, and erase them. */
export function customerRoutes(deps: CustomerDeps & EraseDeps, log: Logger): readonly MountedPath[] {
  return [
    onlyPost(createRoute('/entitlements/lookup', lookupEntitlements(deps), log)),
    onlyPost(createRoute('/entitlements/check', checkEntitlements(deps), log)),
    createRoute('/entitlements', findEntitlements(deps), log),
    createRoute('/customers/:customerId', customerResource(deps), log),
    createRoute('/products/:productId/customers', getProductCustomers(deps), log),
    createRoute('/changes', getChanges(deps), log),
  ]
}

/** GET, DELETE /customers/:customerId. */
function customerResource(deps: CustomerDeps & EraseDeps): RawHandler<'customerId'> {
  const get = getCustomer(deps)
  const erase = eraseCustomer(deps)
  return async (req, res, params) => {
    requireMethod(req, res, 'GET', 'HEAD', 'DELETE')
    await (req.method === 'DELETE' ? erase : get)(req, res, params)
  }
}

/** GET /customers/:customerId: everything that is known of a person, as a data request asks for it. */
function getCustomer(deps: CustomerDeps): RawHandler<'customerId'> {
  const { readCustomer } = deps.customers
  return async (req, res, { customerId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment } = readQuestion(req, deps, ENVIRONMENT_ONLY)
    const customer = await readCustomer({ environment, customerId })
    if (customer === null) {
      throw new LatchkeyError('customer_not_found', 'Nothing is known of this customer.')
    }
    sendJson(res, 200, customerJson(customer), { 'Cache-Control': 'no-store' })
  }
}

/** GET /products/:productId/customers: those with access now, in the order of their ids. */
function getProductCustomers(deps: CustomerDeps): RawHandler<'productId'> {
  const { readProductCustomers } = deps.customers
  return async (req, res, { productId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, PAGE)
    const page = readPage(query)
    const found = await readProductCustomers({ environment, productId, ...withOneMore(page) })
    const body = pageJson(
      found,
      page,
      (item) => item.customerId,
      (item) => ({ customerId: item.customerId, ...entitlementJson(item.entitlement) }),
    )
    sendJson(res, 200, body, { 'Cache-Control': 'no-store' })
  }
}

/** GET /entitlements?externalRef=: what the customers may use whom the merchant's own reference leads to. */
function findEntitlements(deps: CustomerDeps): RawHandler {
  const { findByReference } = deps.customers
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, PAGE_OF_REFERENCE)
    const reference = readReference(query)
    const page = readPage(query)
    const at = readInstant(query, 'at')
    const found = await findByReference({ environment, reference, page: withOneMore(page) })
    const body = await answerPage(deps, { environment, found, page, at })
    // As with one customer: neither of the two says anything about what these customers may use.
    const items = body.items.map(({ asOf: _asOf, cursor: _cursor, ...state }) => state)
    sendTagged(res, body, { ...body, items })
  }
}

/** The page's customers, each with everything they may use. `found`: as many as the page holds, and one more. */
async function answerPage(
  { customers }: CustomerDeps,
  {
    environment,
    found,
    page,
    at,
  }: {
    readonly environment: Environment
    readonly found: readonly string[]
    readonly page: Page
    readonly at: number | null
  },
) {
  const answers = await customers.readAccesses({ environment, customerIds: found, at })
  return pageJson(answers, page, ({ customerId }) => customerId, accessJson)
}

function readReference(query: URLSearchParams): string {
  const reference = readParameter(query, 'externalRef')
  if (reference === null) throw invalidParameter('externalRef', 'is required')
  if (!isUsableId(reference)) {
    throw invalidParameter('externalRef', 'is not a text of 1 to 255 characters without control characters')
  }
  return reference
}

const lookupSchema = z
  .strictObject({
    email: idSchema.optional(),
    communityId: idSchema.optional(),
    messengerId: idSchema.optional(),
  })
  .transform((given, context): CustomerLookup => {
    const { email, communityId, messengerId } = given
    const [lookup, ...others] = [
      ...(email === undefined ? [] : [{ email }]),
      ...(communityId === undefined ? [] : [{ communityId }]),
      ...(messengerId === undefined ? [] : [{ messengerId }]),
    ]
    if (lookup !== undefined && others.length === 0) return lookup
    context.addIssue('needs exactly one of email, communityId and messengerId')
    return z.NEVER
  })

/**
 * POST /entitlements/lookup: what the customers may use who have this email, community account or messenger
 * account, in a body because URLs end up in logs.
 */
function lookupEntitlements(deps: CustomerDeps): RawHandler {
  const { findByDetail } = deps.customers
  return async (req, res) => {
    requireMethod(req, res, 'POST')
    const { environment, query } = readQuestion(req, deps, PAGE_AT)
    const page = readPage(query)
    const at = readInstant(query, 'at')
    requireJson(req)
    const lookup = await readJson(req, lookupSchema)
    const found = await findByDetail({ environment, lookup, page: withOneMore(page) })
    sendJson(res, 200, await answerPage(deps, { environment, found, page, at }), {
      'Cache-Control': 'no-store',
    })
  }
}

/**
 * GET /changes: the change log, oldest first, after `cursor` or from its beginning. A cursor is one that any change or
 * answer about access bears, so that who has read up to the end goes on from the last one.
 */
function getChanges(deps: CustomerDeps): RawHandler {
  const { readChangePage } = deps.customers
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, PAGE)
    const limit = readLimit(query)
    const after = readParameter(query, 'cursor')
    const found = await readChangePage({ environment, after, limit: limit + 1 })
    if (found === null) {
      throw new LatchkeyError('cursor_reset', 'The cursor is not one of this change log: begin anew.')
    }
    const shown = found.slice(0, limit)
    const hasMore = found.length > limit
    const nextCursor = hasMore ? (shown.at(-1)?.cursor ?? null) : null
    const body = { items: shown.map(changeJson), pagination: { nextCursor, hasMore } }
    sendJson(res, 200, body, { 'Cache-Control': 'no-store' })
  }
}
