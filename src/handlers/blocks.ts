import { z } from 'zod'
import { readJson } from './body.js'
import { act, authorizeAct, type ManualActDeps, reasonText } from './manual-act.js'
import { requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'

const blockBody = z.strictObject({ reason: reasonText })
const unblockBody = z.strictObject({ reason: reasonText.nullish() })

/** PUT, DELETE /customers/:customerId/blocks: blocks every product; lifts every block. */
export function blocks(deps: ManualActDeps): RawHandler<'customerId'> {
  const handle = putOrDelete(deps)
  return (req, res, { customerId }) => handle(req, res, { customerId, productId: null })
}

/** PUT, DELETE /customers/:customerId/blocks/:productId: blocks one product; lifts the block on it. */
export function productBlocks(deps: ManualActDeps): RawHandler<'customerId' | 'productId'> {
  return putOrDelete(deps)
}

function putOrDelete(deps: ManualActDeps) {
  return async (
    req: Parameters<RawHandler>[0],
    res: Parameters<RawHandler>[1],
    { customerId, productId }: { readonly customerId: string; readonly productId: string | null },
  ): Promise<void> => {
    requireMethod(req, res, 'PUT', 'DELETE')
    const authorized = authorizeAct(req, deps)
    const isBlock = req.method === 'PUT'
    const { reason = null } = await readJson(req, isBlock ? blockBody : unblockBody)
    const type = isBlock ? 'manual.blocked' : 'manual.unblocked'
    sendJson(res, 200, await act(authorized, { customerId, act: { type, productId }, reason }, deps))
  }
}
