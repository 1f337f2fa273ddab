import type { CustomerDeps } from './customer-questions.js'
import { type EraseDeps, eraseCustomer } from './erase-customer.js'
import { getCustomer } from './get-customer.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'

/** GET, DELETE /customers/:customerId. */
export function customerResource(deps: CustomerDeps & EraseDeps): RawHandler<'customerId'> {
  const get = getCustomer(deps)
  const erase = eraseCustomer(deps)
  return async (req, res, params) => {
    requireMethod(req, res, 'GET', 'HEAD', 'DELETE')
    await (req.method === 'DELETE' ? erase : get)(req, res, params)
  }
}
