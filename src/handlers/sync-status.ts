import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { RawHandler } from './raw-handler.js'
import { readJson } from './read-json.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'
import { outageJson, outboundJson, type SyncStatusJson, syncStatusJson } from './sync-json.js'
import {
  authorizeAllSync,
  authorizeSync,
  findingsIn,
  NOT_STORED,
  type SyncDeps,
  type SyncState,
} from './sync-questions.js'

/** GET /sync: how it stands with roles, groups and the outbound webhook. */
export function getSync(deps: SyncDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const environments = authorizeSync(req, deps)
    const { sync, outbound, outages } = await deps.sync.status(environments)
    const problems = await findingsIn(environments, sync.checked?.problems ?? [], deps.sync)
    const checked = sync.checked && { ...sync.checked, problems }
    sendJson(res, 200, syncStateJson({ sync: { ...sync, checked }, outbound, outages }), NOT_STORED)
  }
}

/** Nothing is told with it. */
const nothing = z.strictObject({})

/** POST /sync/pause: no call is begun from now on, in no environment. POST /sync/resume: they go on. */
export function pauseSync(deps: SyncDeps, paused: boolean): RawHandler {
  const { sync } = deps
  return async (req, res) => {
    requireMethod(req, res, 'POST')
    authorizeAllSync(req, deps)
    await readJson(req, nothing)
    const standing = await sync.status()
    const isOff = !(await sync.hasTargets()) && standing.outbound === null
    // A restore pauses, whatever is configured.
    if (isOff && (paused || !standing.sync.paused)) {
      throw new LatchkeyError(
        'sync_off',
        'Neither a role or group nor an outbound webhook is in the config: there is nothing to pause.',
      )
    }
    await (paused ? sync.pause() : sync.resume())
    sendJson(res, 200, { paused }, NOT_STORED)
  }
}

export function syncStateJson({ sync, outbound, outages }: SyncState): SyncStatusJson {
  return {
    ...syncStatusJson(sync),
    webhook: outbound === null ? null : outboundJson(outbound),
    unreachable: outages.map(outageJson),
  }
}
