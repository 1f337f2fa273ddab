import type { Logger } from 'pino'
import { blocks, productBlocks } from './blocks.js'
import { deleteGrant, postGrant } from './grants.js'
import { putIdentities } from './identities.js'
import type { ManualActDeps } from './manual-act.js'
import type { MountedPath } from './mount.js'
import { createRoute } from './raw-route.js'

/** The routes by which operators act by hand. */
export function manualRoutes(deps: ManualActDeps, log: Logger): readonly MountedPath[] {
  return [
    createRoute('/customers/:customerId/grants', postGrant(deps), log),
    createRoute('/customers/:customerId/grants/:productId', deleteGrant(deps), log),
    createRoute('/customers/:customerId/blocks', blocks(deps), log),
    createRoute('/customers/:customerId/blocks/:productId', productBlocks(deps), log),
    createRoute('/customers/:customerId/identities', putIdentities(deps), log),
  ]
}
