import { z } from 'zod'
import { iso } from './entitlement-json.js'
import { type JoinLinksDeps, readJoinLink } from './join-links.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'

const NOTHING = z.strictObject({})

/**
 * POST /customers/:customerId/link-tokens: a one-time link to the messenger's bot. Whoever follows it first is taken
 * for the customer.
 */
export function postLinkToken(deps: JoinLinksDeps): RawHandler<'customerId'> {
  return async (req, res, { customerId }) => {
    requireMethod(req, res, 'POST')
    const { customer, messenger } = await readJoinLink(req, customerId, NOTHING, deps)
    const { url, token, expiresAt } = await messenger.linkToken(customer)
    sendJson(res, 201, { url, token, expiresAt: iso(expiresAt) })
  }
}
