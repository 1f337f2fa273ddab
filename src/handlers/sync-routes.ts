import type { Logger } from 'pino'
import type { Route } from './raw-handler.js'
import { createRoute } from './route.js'
import { getMemberships } from './sync-memberships.js'
import { getSyncCheck, getSyncPlan } from './sync-plan.js'
import type { SyncDeps } from './sync-questions.js'
import { postSyncRun } from './sync-run.js'
import { getSync, pauseSync } from './sync-status.js'

/** The routes about what follows access: roles, groups, and the outbound webhook. */
export function syncRoutes(deps: SyncDeps, log: Logger): readonly Route[] {
  return [
    createRoute('/sync', getSync(deps), log),
    createRoute('/sync/memberships', getMemberships(deps), log),
    createRoute('/sync/plan', getSyncPlan(deps), log),
    createRoute('/sync/run', postSyncRun(deps, log), log),
    createRoute('/sync/check', getSyncCheck(deps), log),
    createRoute('/sync/pause', pauseSync(deps, true), log),
    createRoute('/sync/resume', pauseSync(deps, false), log),
  ]
}
