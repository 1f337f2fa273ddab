import type { Logger } from 'pino'
import { blocks, productBlocks } from './blocks.js'
import { deleteGrant, postGrant } from './grants.js'
import { putIdentities } from './identities.js'
import type { ManualActDeps } from './manual-act.js'
import type { Route } from './raw-handler.js'
import { createRoute } from './route.js'

/** The routes by which operators act by hand. */
export function manualRoutes(deps: ManualActDeps, log: Logger): readonly Route[] {
  return [
    createRoute('/customers/:customerId/grants', postGrant(deps), log),
    createRoute('/customers/:customerId/grants/:productId', deleteGrant(deps), log),
    createRoute('/customers/:customerId/blocks', blocks(deps), log),
    createRoute('/customers/:customerId/blocks/:productId', productBlocks(deps), log),
    createRoute('/customers/:customerId/identities', putIdentities(deps), log),
  ]
}
