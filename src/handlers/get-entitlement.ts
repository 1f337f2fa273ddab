import type { AccessAnswer } from '../entitlements/answer.js'
import type { Entitlement } from '../entitlements/model.js'
import { type AccessDeps, askAccess } from './access-question.js'
import { entitlementJson } from './entitlement-json.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendTagged } from './send-tagged.js'

export interface EntitlementDeps extends AccessDeps {
  /** What an answer says of one product, be it one that it does not list. */
  readonly entitlementFor: (productId: string, answer: AccessAnswer) => Entitlement
}

/** GET /entitlements/:customerId/:productId. A product never granted is an answer, not a 404. */
export function getEntitlement(deps: EntitlementDeps): RawHandler<'customerId' | 'productId'> {
  return async (req, res, { customerId, productId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const answer = await askAccess(req, customerId, deps)
    sendTagged(res, entitlementJson(deps.entitlementFor(productId, answer)))
  }
}
