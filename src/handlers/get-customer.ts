import { LatchkeyError } from '../errors.js'
import { customerJson } from './customer-json.js'
import { type CustomerDeps, readQuestion } from './customer-questions.js'
import { ENVIRONMENT_ONLY } from './environment.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'

/** GET /customers/:customerId: everything that is known of a person, as a data request asks for it. */
export function getCustomer(deps: CustomerDeps): RawHandler<'customerId'> {
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
