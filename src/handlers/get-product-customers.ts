import { type CustomerDeps, readQuestion } from './customer-questions.js'
import { entitlementJson } from './entitlement-json.js'
import { pageJson, readPage, withOneMore } from './page.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'

const PARAMETERS = ['environment', 'limit', 'cursor'] as const

/** GET /products/:productId/customers: those with access now, in the order of their ids. */
export function getProductCustomers(deps: CustomerDeps): RawHandler<'productId'> {
  const { readProductCustomers } = deps.customers
  return async (req, res, { productId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, PARAMETERS)
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
