import { z } from 'zod'
import { act, authorizeAct, idText, type ManualActDeps, reasonText } from './manual-act.js'
import type { RawHandler } from './raw-handler.js'
import { readJson } from './read-json.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'

const identitiesBody = z
  .strictObject({
    communityId: idText.nullish(),
    messengerId: idText.nullish(),
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
