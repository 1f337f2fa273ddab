import { z } from 'zod'
import { readJson } from './body.js'
import { act, authorizeAct, type ManualActDeps, reasonText } from './manual-act.js'
import { requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'

/** A 64-bit number: a name is no account's id. */
export const communityIdText = z
  .string()
  .regex(/^[1-9]\d{0,19}$/, 'is not the id of a Discord account: a whole number above 0')
/** Below 2^52, as the platform says of its ids; that of a group is negative. */
export const messengerIdText = z
  .string()
  .regex(/^[1-9]\d{0,15}$/, 'is not the id of a Telegram account: a whole number above 0')

const identitiesBody = z
  .strictObject({
    communityId: communityIdText.nullish(),
    messengerId: messengerIdText.nullish(),
    reason: reasonText.nullish(),
  })
  .refine(
    ({ communityId, messengerId }) => communityId != null || messengerId != null,
    'names neither communityId nor messengerId',
  )

/** PUT /customers/:customerId/identities: links platform accounts; what is left out stays as it is. */
export function putIdentities(deps: ManualActDeps): RawHandler<'customerId'> {
  return async (req, res, { customerId }) => {
    requireMethod(req, res, 'PUT')
    const authorized = authorizeAct(req, deps)
    const { communityId = null, messengerId = null, reason = null } = await readJson(req, identitiesBody)
    const linked = { type: 'manual.identity_linked', communityId, messengerId } as const
    sendJson(res, 200, await act(authorized, { customerId, act: linked, reason }, deps))
  }
}
