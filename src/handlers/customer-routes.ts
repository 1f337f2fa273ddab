import type { Logger } from 'pino'
import { checkEntitlements } from './check-entitlements.js'
import type { CustomerDeps } from './customer-questions.js'
import { customerResource } from './customer-resource.js'
import type { EraseDeps } from './erase-customer.js'
import { findEntitlements } from './find-entitlements.js'
import { getChanges } from './get-changes.js'
import { getProductCustomers } from './get-product-customers.js'
import { lookupEntitlements } from './lookup-entitlements.js'
import { onlyPost } from './only-post.js'
import type { Route } from './raw-handler.js'
import { createRoute } from './route.js'

export interface CustomerRoutes {
  /** To be tried before the routes about one customer's access, whose paths take these in. */
  readonly posted: readonly Route[]
  readonly read: readonly Route[]
}

/** The routes that find customers, tell what is known of them and how their access changed, and erase them. */
export function customerRoutes(deps: CustomerDeps & EraseDeps, log: Logger): CustomerRoutes {
  return {
    posted: [
      onlyPost(createRoute('/entitlements/lookup', lookupEntitlements(deps), log)),
      onlyPost(createRoute('/entitlements/check', checkEntitlements(deps), log)),
    ],
    read: [
      createRoute('/entitlements', findEntitlements(deps), log),
      createRoute('/customers/:customerId', customerResource(deps), log),
      createRoute('/products/:productId/customers', getProductCustomers(deps), log),
      createRoute('/changes', getChanges(deps), log),
    ],
  }
}
