import type { Logger } from 'pino'
import { checkEntitlements } from './check-entitlements.js'
import type { CustomerDeps } from './customer-questions.js'
import { type EraseDeps, eraseCustomer } from './erase-customer.js'
import { findEntitlements } from './find-entitlements.js'
import { getChanges } from './get-changes.js'
import { getCustomer } from './get-customer.js'
import { getProductCustomers } from './get-product-customers.js'
import { lookupEntitlements } from './lookup-entitlements.js'
import type { RawHandler, Route } from './raw-handler.js'
import { createRoute, onlyPost, requireMethod } from './route.js'

/** The routes that find customers, tell what is known of them and how their access changed, and erase them. */
export function customerRoutes(deps: CustomerDeps & EraseDeps, log: Logger): readonly Route[] {
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
