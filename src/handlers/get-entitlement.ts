import type { Entitlement } from '../entitlements/model.js'
import { type AccessDeps, askAccess } from './access-question.js'
import { entitlementJson } from './entitlement-json.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendTagged } from './send-tagged.js'

/** GET /entitlements/:customerId/:productId. A product never granted is an answer, not a 404. */
export function getEntitlement(deps: AccessDeps): RawHandler<'customerId' | 'productId'> {
  return async (req, res, { customerId, productId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { entitlements, blocked } = await askAccess(req, customerId, deps)
    const granted = entitlements.find((entitlement) => entitlement.productId === productId)
    sendTagged(res, entitlementJson(granted ?? neverGranted(productId, blocked)))
  }
}

function neverGranted(productId: string, blocked: boolean): Entitlement {
  const status = blocked ? 'blocked' : 'none'
  return { productId, active: false, status, since: null, until: null, pastDue: false, sources: [] }
}
