import { LatchkeyError } from '../errors.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'
import { outboundJson, type SyncStatusJson, syncStatusJson } from './sync-json.js'
import { authorizeSync, NOT_STORED, type SyncDeps, type SyncState } from './sync-questions.js'

/** GET /sync: how it stands with roles, groups and the outbound webhook. */
export function getSync(deps: SyncDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { isShown } = authorizeSync(req, deps)
    const told = syncStateJson(await deps.sync.status())
    sendJson(res, 200, { ...told, targets: told.targets.filter(isShown) }, NOT_STORED)
  }
}

/** POST /sync/pause: no call is begun from now on. POST /sync/resume: they go on. */
export function pauseSync(deps: SyncDeps, paused: boolean): RawHandler {
  const { sync } = deps
  return async (req, res) => {
    requireMethod(req, res, 'POST')
    authorizeSync(req, deps)
    if (!(await sync.hasTargets()) && (await sync.status()).outbound === null) {
      throw new LatchkeyError(
        'sync_off',
        'Neither a role or group nor an outbound webhook is in the config: there is nothing to pause.',
      )
    }
    await (paused ? sync.pause() : sync.resume())
    sendJson(res, 200, { paused }, NOT_STORED)
  }
}

export function syncStateJson({ sync, outbound }: SyncState): SyncStatusJson {
  return { ...syncStatusJson(sync), webhook: outbound === null ? null : outboundJson(outbound) }
}
