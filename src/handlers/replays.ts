import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { RecomputeJobs, ReplayStatus } from '../recompute/jobs.js'
import type { Authenticate } from './authenticate.js'
import { idText, invalidBody, readJson, requireJson } from './body.js'
import {
  beginsBeforeItEnds,
  type EventDeps,
  LATER_THAN_TO,
  STORED_DISPOSITIONS,
  unknownEndpoint,
} from './events.js'
import type { MountedPath } from './mount.js'
import {
  ENVIRONMENT_ONLY,
  invalidParameter,
  pageJson,
  readEnvironment,
  readPage,
  readQuery,
  shownEnvironments,
} from './query.js'
import { createRoute, requireMethod } from './raw-route.js'
import { replayJson } from './replay-json.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'

export interface ReplaysDeps extends Pick<EventDeps, 'endpointNames' | 'endpointNamed' | 'storedEvents'> {
  readonly authenticate: Authenticate
  /** The environments of the configured endpoints; asked each time, since a reload may change them. */
  readonly environments: () => readonly Environment[]
  readonly replays: Pick<RecomputeJobs, 'startReplay' | 'replays' | 'findReplay' | 'stopReplay'>
}

/** The routes that read stored events again, and tell how that goes. */
export function replayRoutes(deps: ReplaysDeps, log: Logger): readonly MountedPath[] {
  return [
    createRoute('/replays', replays(deps), log),
    createRoute('/replays/:replayId', oneReplay(deps), log),
  ]
}

const LIST_PARAMETERS = ['environment', 'limit', 'cursor'] as const
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
    .refine(beginsBeforeItEnds, LATER_THAN_TO)
    .prefault({}),
  dryRun: z.boolean().default(false),
})

/** POST /replays: starts one, or joins the one that is the same. GET /replays: the newest of this process, newest first. */
function replays(deps: ReplaysDeps): RawHandler {
  const { authenticate, environments, replays: jobs } = deps
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD', 'POST')
    const key = authenticate(req, 'admin')
    if (req.method !== 'POST') {
      const query = readQuery(req, LIST_PARAMETERS)
      const shown = shownEnvironments(query, environments(), key)
      const page = readPage(query)
      const known = jobs.replays().filter(({ filter }) => shown.includes(filter.environment))
      sendJson(
        res,
        200,
        pageJson(behind(known, page.after), page, ({ id }) => id, replayJson),
        NOT_STORED,
      )
      return
    }
    const query = readQuery(req, ENVIRONMENT_ONLY)
    const environment = readEnvironment(query, environments(), key)
    requireJson(req)
    const { filter: told, dryRun } = await readJson(req, replayBody)
    const filter = { environment, ...told }
    const problem = await unknownEndpoint(filter, deps)
    if (problem !== null) throw invalidBody([{ path: 'filter.endpoint', message: problem }])
    const started = jobs.startReplay({ filter, dryRun })
    sendJson(res, 202, replayJson(started), { ...NOT_STORED, Location: `/replays/${started.id}` })
  }
}

/** @throws LatchkeyError `invalid_request` where what the last page ended with is known no more */
function behind(known: readonly ReplayStatus[], after: string): readonly ReplayStatus[] {
  if (after === '') return known
  const place = known.findIndex(({ id }) => id === after)
  if (place === -1) throw invalidParameter('cursor', 'is none that was given out')
  return known.slice(place + 1)
}

/** GET /replays/:replayId: how it stands. DELETE: stops it; what it has done stands. */
function oneReplay(deps: ReplaysDeps): RawHandler<'replayId'> {
  const { replays: jobs } = deps
  return async (req, res, { replayId }) => {
    requireMethod(req, res, 'GET', 'HEAD', 'DELETE')
    const status = findFor(req, replayId, deps)
    const told = req.method === 'DELETE' ? ((await jobs.stopReplay(replayId)) ?? status) : status
    sendJson(res, 200, replayJson(told), NOT_STORED)
  }
}

/** @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`, `replay_not_found` */
function findFor(
  req: IncomingMessage,
  replayId: string,
  { authenticate, environments, replays: jobs }: ReplaysDeps,
): ReplayStatus {
  const key = authenticate(req, 'admin')
  const shown = shownEnvironments(readQuery(req, ENVIRONMENT_ONLY), environments(), key)
  const found = jobs.findReplay(replayId)
  if (found !== null && shown.includes(found.filter.environment)) return found
  throw new LatchkeyError('replay_not_found', 'There is no such replay, or it was of an earlier start.')
}
