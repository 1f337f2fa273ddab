import type { CheckFinding } from '../sync/platform.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'
import { planJson } from './sync-json.js'
import { authorizeSync, findingsIn, NOT_STORED, requireTargets, type SyncDeps } from './sync-questions.js'

/** GET /sync/plan: the calls that would be made now; makes none. */
export function getSyncPlan(deps: SyncDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const environments = authorizeSync(req, deps)
    await requireTargets(deps.sync)
    sendJson(res, 200, planJson(await deps.sync.plan(environments)), NOT_STORED)
  }
}

/** GET /sync/check: asks the platforms whether all that is needed is there. */
export function getSyncCheck(deps: SyncDeps): RawHandler {
  const { sync } = deps
  return async (req, res) => {
    requireMethod(req, res, 'GET')
    const environments = authorizeSync(req, deps)
    await requireTargets(sync)
    const findings = await findingsIn(environments, await sync.check(), sync)
    sendJson(res, 200, checkJson(findings), NOT_STORED)
  }
}

function checkJson(findings: readonly CheckFinding[]) {
  return {
    ok: findings.every(({ isFine }) => isFine),
    findings: findings.map(({ about, isFine, message }) => ({ about, ok: isFine, message })),
  }
}

export type SyncCheckJson = ReturnType<typeof checkJson>
