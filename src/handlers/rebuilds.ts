import type { Logger } from 'pino'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { RecomputeJobs } from '../recompute/jobs.js'
import type { Authenticate } from './authenticate.js'
import { ENVIRONMENT_ONLY, readEnvironment, requireBoth } from './environment.js'
import { readParameter, readQuery } from './query.js'
import type { RawHandler, Route } from './raw-handler.js'
import { rebuildJson } from './rebuild-json.js'
import { createRoute, requireMethod } from './route.js'
import { sendJson } from './send.js'

export interface RebuildsDeps {
  readonly authenticate: Authenticate
  readonly rebuilds: Pick<RecomputeJobs, 'startRebuild' | 'rebuildStatus'>
  /** Asked each time, since a reload may change it. */
  readonly configuredPolicy: () => { readonly policy: Policy; readonly fingerprint: string }
  readonly policyInForce: () => Promise<Policy>
}

/** The routes that rebuild the state, and tell how that goes. */
export function rebuildRoutes(deps: RebuildsDeps, log: Logger): readonly Route[] {
  return [createRoute('/policy/apply', applyPolicy(deps), log), createRoute('/rebuild', rebuild(deps), log)]
}

const NOT_STORED = { 'Cache-Control': 'no-store' }
const ACCEPTED = { ...NOT_STORED, Location: '/rebuild' }

/**
 * POST /policy/apply: puts the configured policy in force, and moves all sources to it. `?expect=` names the
 * policy that the caller means, who may have read the config file later than the daemon.
 */
function applyPolicy({ authenticate, rebuilds, configuredPolicy }: RebuildsDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'POST')
    requireBoth(authenticate(req, 'admin'))
    const expected = readParameter(readQuery(req, ['expect']), 'expect')
    const { policy, fingerprint } = configuredPolicy()
    if (expected !== null && expected !== fingerprint) {
      throw new LatchkeyError(
        'policy_differs',
        'The daemon has read another policy than this one: have it read the config again (SIGHUP) first.',
      )
    }
    sendJson(res, 202, rebuildJson(rebuilds.startRebuild(policy)), ACCEPTED)
  }
}

/**
 * POST /rebuild: rebuilds both environments under the policy in force. GET /rebuild: the state of the last one, with
 * what it changed; `?environment=`: in that environment alone.
 */
function rebuild({ authenticate, rebuilds, policyInForce }: RebuildsDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD', 'POST')
    const key = authenticate(req, 'admin')
    requireBoth(key)
    if (req.method === 'POST') {
      readQuery(req, [])
      sendJson(res, 202, rebuildJson(rebuilds.startRebuild(await policyInForce())), ACCEPTED)
    } else {
      const query = readQuery(req, ENVIRONMENT_ONLY)
      const environment = query.has('environment') ? readEnvironment(query, [], key) : undefined
      sendJson(res, 200, rebuildJson(await rebuilds.rebuildStatus(), environment), NOT_STORED)
    }
  }
}
