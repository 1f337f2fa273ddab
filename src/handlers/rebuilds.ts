import type { Logger } from 'pino'
import { z } from 'zod'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { ComparisonName, RecomputeJobs } from '../recompute/jobs.js'
import type { Authenticate } from './authenticate.js'
import { readJson } from './body.js'
import type { MountedPath } from './mount.js'
import {
  ENVIRONMENT_ONLY,
  readEnvironment,
  readParameter,
  readQuery,
  requireBoth,
  shownEnvironments,
} from './query.js'
import { createRoute, requireMethod } from './raw-route.js'
import { comparisonJson, rebuildJson } from './rebuild-json.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'

export interface RebuildsDeps {
  readonly authenticate: Authenticate
  readonly rebuilds: Pick<
    RecomputeJobs,
    'startRebuild' | 'rebuildStatus' | 'startComparison' | 'comparisonStatus'
  >
  /** Asked each time, since a reload may change it. */
  readonly configuredPolicy: () => { readonly policy: Policy; readonly fingerprint: string }
  readonly policyInForce: () => Promise<Policy>
  /** Reads a policy that is written as in the config. @throws LatchkeyError `invalid_request` */
  readonly policyIn: (given: unknown) => Policy
  /** Whether a rebuild has begun and not ended. */
  readonly isUnfinished: () => Promise<boolean>
}

/** The routes that rebuild the state, and tell how that goes. */
export function rebuildRoutes(deps: RebuildsDeps, log: Logger): readonly MountedPath[] {
  return [
    createRoute('/policy', getPolicy(deps), log),
    createRoute('/policy/diff', comparison(deps, 'policy diff'), log),
    createRoute('/policy/apply', applyPolicy(deps), log),
    createRoute('/rebuild', rebuild(deps), log),
    createRoute('/rebuild/verification', comparison(deps, 'verification'), log),
  ]
}

/** Of the differences that a comparison finds; all are counted. */
const MAX_NAMED = 100_000
const NAMED = 1_000

const NOT_STORED = { 'Cache-Control': 'no-store' }
const ACCEPTED = { ...NOT_STORED, Location: '/rebuild' }

/** GET /policy: the one in force, and the one that is configured. */
function getPolicy({
  authenticate,
  configuredPolicy,
  policyInForce,
  isUnfinished,
}: RebuildsDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    requireBoth(authenticate(req, 'admin'))
    readQuery(req, [])
    const { policy: configured } = configuredPolicy()
    const told = { inForce: await policyInForce(), configured, unfinishedRebuild: await isUnfinished() }
    sendJson(res, 200, told satisfies PolicyJson, NOT_STORED)
  }
}

export interface PolicyJson {
  readonly inForce: Policy
  readonly configured: Policy
  readonly unfinishedRebuild: boolean
}

const LOCATION_OF: Readonly<Record<ComparisonName, string>> = {
  verification: '/rebuild/verification',
  'policy diff': '/policy/diff',
}

const comparisonBody = z.strictObject({
  /** As in the config; left out: the configured one. */
  policy: z.unknown().optional(),
  named: z.int().min(1).max(MAX_NAMED).default(NAMED),
})

/**
 * POST /policy/diff: whose access would change under a policy. POST /rebuild/verification: what is not stored as its
 * events say. GET: how that goes. `?environment=`: in that environment alone.
 */
function comparison(deps: RebuildsDeps, name: ComparisonName): RawHandler {
  const { authenticate, rebuilds, configuredPolicy, policyIn } = deps
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD', 'POST')
    const key = authenticate(req, 'admin')
    requireBoth(key)
    if (req.method !== 'POST') {
      readQuery(req, [])
      sendJson(res, 200, comparisonJson(rebuilds.comparisonStatus(name)), NOT_STORED)
      return
    }
    const environments = shownEnvironments(readQuery(req, ENVIRONMENT_ONLY), [], key)
    const { policy: given, named } = await readJson(req, comparisonBody)
    const other = given === undefined ? configuredPolicy().policy : policyIn(given)
    const policy = name === 'policy diff' ? other : null
    const started = rebuilds.startComparison({ name, environments, policy, named })
    sendJson(res, 202, comparisonJson(started), { ...NOT_STORED, Location: LOCATION_OF[name] })
  }
}

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
