import { z } from 'zod'
import { iso } from './entitlement-json.js'
import { type JoinLinksDeps, readJoinLink } from './join-links.js'
import { idText } from './manual-act.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'

const inviteBody = z
  .strictObject({ productId: idText.nullish(), groupId: idText.nullish() })
  .refine(
    ({ productId, groupId }) => productId == null || groupId == null,
    'names both productId and groupId: one of them, or neither for all groups',
  )

/** POST /customers/:customerId/invites: a link to each group that the customer's access opens. */
export function postInvites(deps: JoinLinksDeps): RawHandler<'customerId'> {
  return async (req, res, { customerId }) => {
    requireMethod(req, res, 'POST')
    const { customer, body, messenger } = await readJoinLink(req, customerId, inviteBody, deps)
    const { productId = null, groupId = null } = body
    const invites = await messenger.invite({ ...customer, productId, groupId })
    sendJson(res, 201, {
      invites: invites.map((one) => ({ ...one, expiresAt: iso(one.expiresAt) })),
    })
  }
}
