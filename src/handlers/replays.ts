import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { ReplayJobs, ReplayStatus } from '../ingest/replay-jobs.js'
import type { Environment } from '../provider/event.js'
import type { ApiKey } from './api-key.js'
import type { Authenticate } from './authenticate.js'
import { readEnvironment } from './environment.js'
import { STORED_DISPOSITIONS } from './event-filter.js'
import { idText } from './manual-act.js'
import { queryOf } from './query.js'
import type { RawHandler, Route } from './raw-handler.js'
import { readJson } from './read-json.js'
import { replayJson } from './replay-json.js'
import { requireJson } from './require-json.js'
import { createRoute, requireMethod } from './route.js'
import { sendJson } from './send.js'

export interface ReplaysDeps {
  readonly authenticate: Authenticate
  /** The environments of the configured endpoints; asked each time, since a reload may change them. */
  readonly environments: () => readonly Environment[]
  readonly replays: Pick<ReplayJobs, 'start' | 'list' | 'find' | 'stop'>
}

/** The routes that read stored events again, and tell how that goes. */
export function replayRoutes(deps: ReplaysDeps, log: Logger): readonly Route[] {
  return [
    createRoute('/replays', replays(deps), log),
    createRoute('/replays/:replayId', oneReplay(deps), log),
  ]
}

const NOT_STORED = { 'Cache-Control': 'no-store' }

const instant = z.iso
  .datetime({ offset: true, error: 'is not an instant such as 2026-01-31T12:00:00Z' })
  .transform((time) => Date.parse(time))

const replayBody = z.strictObject({
  filter: z
    .strictObject({
      type: idText.nullable().default(null),
      disposition: z.enum(STORED_DISPOSITIONS).nullable().default(null),
      customerId: idText.nullable().default(null),
      endpoint: idText.nullable().default(null),
      from: instant.nullable().default(null),
      to: instant.nullable().default(null),
    })
    .prefault({}),
  dryRun: z.boolean().default(false),
})

/** POST /replays: starts one, or joins the one that is the same. GET /replays: the newest of this process, newest first. */
function replays({ authenticate, environments, replays: jobs }: ReplaysDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD', 'POST')
    const key = authenticate(req, 'admin')
    if (req.method !== 'POST') {
      const items = jobs
        .list()
        .filter((status) => mayKnow(key, status))
        .map(replayJson)
      sendJson(res, 200, { items, pagination: { nextCursor: null, hasMore: false } }, NOT_STORED)
      return
    }
    const environment = readEnvironment(queryOf(req.url ?? ''), environments(), key)
    requireJson(req)
    const { filter, dryRun } = await readJson(req, replayBody)
    const started = jobs.start({ filter: { environment, ...filter }, dryRun })
    sendJson(res, 202, replayJson(started), { ...NOT_STORED, Location: `/replays/${started.id}` })
  }
}

/** GET /replays/:replayId: how it stands. DELETE: stops it; what it has done stands. */
function oneReplay({ authenticate, replays: jobs }: ReplaysDeps): RawHandler<'replayId'> {
  return async (req, res, { replayId }) => {
    requireMethod(req, res, 'GET', 'HEAD', 'DELETE')
    const status = findFor(authenticate, req, jobs.find(replayId))
    const told = req.method === 'DELETE' ? ((await jobs.stop(replayId)) ?? status) : status
    sendJson(res, 200, replayJson(told), NOT_STORED)
  }
}

/** @throws LatchkeyError `unauthorized`, `forbidden`, `replay_not_found` */
function findFor(authenticate: Authenticate, req: IncomingMessage, found: ReplayStatus | null): ReplayStatus {
  const key = authenticate(req, 'admin')
  if (found !== null && mayKnow(key, found)) return found
  throw new LatchkeyError('replay_not_found', 'There is no such replay, or it was of an earlier start.')
}

function mayKnow({ environments }: ApiKey, { filter }: ReplayStatus): boolean {
  return environments.includes(filter.environment)
}
