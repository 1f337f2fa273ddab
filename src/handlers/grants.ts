import { z } from 'zod'
import { readJson } from './body.js'
import { act, authorizeAct, idText, type ManualActDeps, reasonText } from './manual-act.js'
import { requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'

const grantBody = z.strictObject({
  productId: idText,
  until: z.iso
    .datetime({ offset: true, error: 'is not an instant such as 2027-01-31T12:00:00Z' })
    .transform((time) => Date.parse(time))
    .nullish(),
  reason: reasonText,
})
const revokeBody = z.strictObject({ reason: reasonText.nullish() })

/** POST /customers/:customerId/grants: grants a product by hand, until a time or for good. */
export function postGrant(deps: ManualActDeps): RawHandler<'customerId'> {
  return async (req, res, { customerId }) => {
    requireMethod(req, res, 'POST')
    const authorized = authorizeAct(req, deps)
    const { productId, until = null, reason } = await readJson(req, grantBody)
    const granted = { type: 'manual.granted', productId, until } as const
    sendJson(res, 201, await act(authorized, { customerId, act: granted, reason }, deps))
  }
}

/** DELETE /customers/:customerId/grants/:productId: revokes what was granted by hand, and nothing else. */
export function deleteGrant(deps: ManualActDeps): RawHandler<'customerId' | 'productId'> {
  return async (req, res, { customerId, productId }) => {
    requireMethod(req, res, 'DELETE')
    const authorized = authorizeAct(req, deps)
    const { reason = null } = await readJson(req, revokeBody)
    const revoked = { type: 'manual.revoked', productId } as const
    sendJson(res, 200, await act(authorized, { customerId, act: revoked, reason }, deps))
  }
}
