/* Replays: stored events are read again by the current program. */

import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { Replay } from '../recompute/job.js'
import type { RecomputeJobs } from '../recompute/jobs.js'
import { readEvent } from '../store/event-questions.js'
import type { EventFilter } from '../store/event-walk.js'
import { counts, environment, instant, platformCall } from './answers.js'
import { idText, invalidBody } from './body.js'
import { beginsBeforeItEnds, LATER_THAN_TO, STORED_DISPOSITIONS, unknownName } from './events.js'
import { firstOf, idPlace, instantParameter, invalidParameter, PAGE, pageOf } from './query.js'
import { summary } from './rebuilds.js'
import { ADMIN, type MountDeps, type Route, route } from './route.js'

export interface ReplayDeps extends MountDeps {
  readonly jobs: Pick<RecomputeJobs, 'startReplay' | 'replays' | 'findReplay' | 'stopReplay'>
}

const ended = z.object({
  ...counts(
    'read',
    'changed',
    'recovered',
    'quarantined',
    'duplicates',
    'skipped',
    'notReplayable',
    'altered',
  ),
  ...summary.shape,
  /** What a dry run would change in roles and groups; null for a real replay, whose changes follow by themselves. */
  calls: z.object({ ...counts('gives', 'takes'), sample: z.array(platformCall) }).nullable(),
})
export type ReplaySummaryJson = z.input<typeof ended>

export const replay = z.object({
  id: z.string(),
  state: z.enum(['running', 'done', 'stopped', 'failed']),
  dryRun: z.boolean(),
  filter: z.object({
    environment,
    type: z.string().nullable(),
    disposition: z.enum(STORED_DISPOSITIONS).nullable(),
    customerId: z.string().nullable(),
    endpoint: z.string().nullable(),
    from: instant.nullable(),
    to: instant.nullable(),
    eventId: z.string().nullable(),
  }),
  startedAt: instant,
  endedAt: instant.nullable(),
  progress: z.object({
    reached: z.int(),
    total: z.int(),
    perSecond: z.number().nullable(),
    remainingSeconds: z.int().nullable(),
  }),
  summary: ended.nullable(),
  reason: z.string().nullable(),
})
export type ReplayJson = z.input<typeof replay>

function replayOf({ id, plan, startedAt, progress, outcome }: Replay) {
  return {
    id,
    dryRun: plan.mode === 'compare',
    filter: { ...plan.scope, eventId: plan.scope.eventId ?? null },
    startedAt,
    progress,
    state: outcome.state,
    endedAt: outcome.state === 'running' ? null : outcome.endedAt,
    summary:
      outcome.state === 'done'
        ? { ...outcome.report.counts, ...outcome.report.access.all, calls: outcome.report.calls }
        : null,
    reason: 'reason' in outcome ? outcome.reason : null,
  }
}

export const replayRoutes: readonly Route<ReplayDeps>[] = [
  route('GET /replays', {
    operationId: 'listReplays',
    summary: 'The newest replays, newest first.',
    ...ADMIN,
    query: z.object(PAGE),
    answer: pageOf(replay, idPlace),
    async handle({ query: { limit, cursor }, environments }, { jobs }: ReplayDeps) {
      const known = (await jobs.replays()).filter(({ plan }) => environments.includes(plan.scope.environment))
      const place = cursor === undefined ? -1 : known.findIndex(({ id }) => id === cursor)
      if (cursor !== undefined && place === -1)
        throw invalidParameter('cursor', 'is not a cursor of this list: use the one from the last page')
      return firstOf(known.slice(place + 1).map(replayOf), limit, ({ id }) => id)
    },
  }),
  route('POST /replays', {
    operationId: 'startReplay',
    summary: 'Starts a replay, or joins an identical one.',
    scope: 'admin',
    environments: 'one',
    body: z.strictObject({
      filter: z
        .strictObject({
          type: idText.nullable().default(null),
          disposition: z.enum(STORED_DISPOSITIONS).nullable().default(null),
          customerId: idText.nullable().default(null),
          endpoint: idText.nullable().default(null),
          from: instantParameter.nullable().default(null),
          to: instantParameter.nullable().default(null),
          /** This one alone. */
          eventId: idText.nullable().default(null),
        })
        .refine(beginsBeforeItEnds, LATER_THAN_TO)
        .prefault({}),
      dryRun: z.boolean().default(false),
    }),
    bodyType: 'json',
    answer: replay,
    status: 202,
    errors: ['rebuild_running', 'replay_running'],
    acceptedAt: ({ id }) => `/replays/${id}`,
    async handle({ body: { filter: given, dryRun }, environment }, deps: ReplayDeps) {
      const filter: EventFilter = { environment, ...given }
      const issue = await unknownName(filter, deps)
      if (issue !== null) throw invalidBody([{ ...issue, path: `filter.${issue.path}` }])
      const { eventId } = given
      if (eventId !== null && (await readEvent(deps.db, { environment, eventId })) === null)
        throw invalidBody([{ path: 'filter.eventId', message: 'is not the id of a stored event' }])
      return replayOf(await deps.jobs.startReplay({ filter, dryRun }))
    },
  }),
  route('GET /replays/:replayId', {
    operationId: 'getReplay',
    summary: 'The progress and result of a replay.',
    ...ADMIN,
    answer: replay,
    errors: ['replay_not_found'],
    handle: async ({ params, environments }, { jobs }: ReplayDeps) =>
      replayOf(await findReplay(params.replayId, environments, jobs)),
  }),
  route('DELETE /replays/:replayId', {
    operationId: 'stopReplay',
    summary: 'Stops a replay; the events already done stay done.',
    ...ADMIN,
    answer: replay,
    errors: ['replay_not_found'],
    async handle({ params, environments }, { jobs }: ReplayDeps) {
      const found = await findReplay(params.replayId, environments, jobs)
      return replayOf((await jobs.stopReplay(found.id)) ?? found)
    },
  }),
]

/** @throws LatchkeyError `replay_not_found` */
async function findReplay(
  id: string,
  environments: readonly Environment[],
  { findReplay: find }: ReplayDeps['jobs'],
): Promise<Replay> {
  const found = await find(id)
  if (found !== null && environments.includes(found.plan.scope.environment)) return found
  throw new LatchkeyError('replay_not_found', 'There is no such replay: only the newest are kept.')
}
