import { type AccessDeps, askAccess } from './access-question.js'
import { accessJson } from './entitlement-json.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendTagged } from './send-tagged.js'

/**
 * GET /entitlements/:customerId. The ETag leaves out `asOf` and the cursor, which move with the clock and with
 * other customers, and takes in every end of access: what a caller keeps by it never outlives one.
 */
export function getEntitlements(deps: AccessDeps): RawHandler<'customerId'> {
  return async (req, res, { customerId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const body = accessJson(await askAccess(req, customerId, deps))
    const { asOf: _asOf, cursor: _cursor, ...state } = body
    sendTagged(res, body, state)
  }
}
