/* Roles, groups and the outbound webhooks, which follow access. */

import { z } from 'zod'
import type { SyncState } from '../operations/metrics.js'
import { counts, environment, instant, platformCall, toJson } from './answers.js'
import { idText, invalidField } from './body.js'
import { requireBoth } from './query.js'
import { ADMIN, ADMIN_OF_BOTH, type Route, route } from './route.js'
import type { SyncDeps, SyncQuestionDeps } from './sync/deps.js'
import { failure, membershipRoutes, platform, STATES, targetProblem } from './sync/memberships.js'
import { messageQuestions, messageRoutes } from './sync/messages.js'

const callState = {
  state: z.enum(['ok', 'limited', 'stopped']),
  until: instant.nullable(),
  reason: failure.nullable(),
}

export const syncStatus = z.object({
  paused: z.boolean(),
  /** Whether this instance makes the calls and sends; of several on one database, one does. */
  leads: z.boolean(),
  unconfirmed: z.int(),
  sweptAt: instant.nullable(),
  checked: z
    .object({ at: instant, problems: z.array(z.object({ about: z.string(), message: z.string() })) })
    .nullable(),
  platforms: z.array(z.object({ platform, ...callState })),
  targets: z.array(
    z.object({
      environment,
      target: z.string(),
      ...callState,
      memberships: z.object(counts(...STATES)),
    }),
  ),
  webhooks: z.array(
    z.object({
      id: z.string(),
      origin: z.string(),
      disabled: z.boolean(),
      waiting: z.int(),
      oldestWaitingAt: instant.nullable(),
      failed: z.int(),
      lastDeliveredAt: instant.nullable(),
      lastError: z.object({ at: instant, reason: z.string() }).nullable(),
    }),
  ),
  /** A platform, or `webhook:` and the id of an address. */
  unreachable: z.array(z.object({ platform: z.string(), since: instant, reason: z.string() })),
})
export type SyncStatusJson = z.input<typeof syncStatus>

/** The answer of `GET /sync`. */
export function syncStateJson(state: SyncState): SyncStatusJson {
  return toJson(syncStatus, state)
}

export const planAnswer = z.object({
  paused: z.boolean(),
  hash: z.string().nullable(),
  calls: z.array(platformCall.extend({ needsConfirmation: z.boolean() })),
})
export type SyncPlanJson = z.input<typeof planAnswer>

const checkAnswer = z.object({
  ok: z.boolean(),
  findings: z.array(z.object({ about: z.string(), ok: z.boolean(), message: z.string() })),
})
export type SyncCheckJson = z.input<typeof checkAnswer>

export const ran = z.object({
  done: z.boolean(),
  paused: z.boolean(),
  /** False: another instance makes the calls. */
  leads: z.boolean(),
  ...counts('given', 'taken', 'unchanged', 'failed', 'waiting', 'parked', 'unconfirmed', 'stopped', 'left'),
  ...counts('messages'),
})
/** The run goes on after the answer. */
const runs = z.object({ done: z.literal(false) })
export type SyncRunJson =
  | z.input<typeof ran>
  | (z.input<typeof runs> & { readonly left?: never; readonly stopped?: never })

/** Platform limits decide how long a run takes; the request is answered before a proxy gives up. */
const ANSWER_WITHIN_MS = 20_000

/** Names the outbound webhooks among the targets of a retry; `webhook:<id>` names one. */
const WEBHOOK_TARGET = 'webhook'

/** Pauses or resumes all calls, in both environments. */
function pausing(path: '/sync/pause' | '/sync/resume', paused: boolean, summary: string): Route<SyncDeps> {
  return route(`POST ${path}`, {
    operationId: paused ? 'pauseSync' : 'resumeSync',
    summary,
    ...ADMIN_OF_BOTH,
    body: z.strictObject({}),
    answer: z.object({ paused: z.boolean() }),
    async handle(_, { sync }: SyncDeps) {
      await (paused ? sync.pause() : sync.resume())
      return { paused }
    },
  })
}

export const syncQuestions: readonly Route<SyncQuestionDeps>[] = [
  route('GET /sync', {
    operationId: 'getSync',
    summary: 'The state of roles, groups and the outbound webhooks.',
    ...ADMIN,
    answer: syncStatus,
    handle: ({ environments }, { sync }: SyncQuestionDeps) => sync.status(environments),
  }),
  ...membershipRoutes,
  route('GET /sync/plan', {
    operationId: 'getSyncPlan',
    summary: 'The calls that would be made now; makes none.',
    ...ADMIN,
    answer: planAnswer,
    handle: ({ environments }, { sync }: SyncQuestionDeps) => sync.plan(environments),
  }),
  ...messageQuestions,
]

export const syncRoutes: readonly Route<SyncDeps>[] = [
  route('POST /sync/run', {
    operationId: 'runSync',
    // `retry` makes waiting and parked memberships due first; `confirm` the removals of the plan with that hash.
    summary: 'Does all the work that is due now; if that takes long, it answers early and goes on.',
    ...ADMIN,
    body: z.strictObject({
      confirm: z.string().min(1, 'is empty').max(255).exactOptional(),
      retry: z
        .strictObject({
          target: idText.exactOptional(),
          customerId: idText.exactOptional(),
        })
        .exactOptional(),
      sweep: z.boolean().exactOptional(),
    }),
    bodyType: 'json',
    answer: z.union([ran, runs]),
    acceptedAt: ({ done }) => (done ? null : '/sync'),
    errors: ['plan_changed'],
    async handle({ body, environments, key }, { sync, log }: SyncDeps) {
      // It may remove roles in any environment.
      if (body.sweep === true) requireBoth(key, 'A sweep')
      const { target = WEBHOOK_TARGET } = body.retry ?? {}
      const webhooks = sync.webhooks().map((id) => `${WEBHOOK_TARGET}:${id}`)
      if (target !== WEBHOOK_TARGET && !webhooks.includes(target)) {
        const problem = targetProblem(target, [...(await sync.targets(environments)), ...webhooks])
        if (problem !== null) throw invalidField('retry.target', `The target "${target}"`, problem)
      }
      const running = sync.run({ ...body, environments })
      const late = new Promise<null>((resolve) => setTimeout(resolve, ANSWER_WITHIN_MS, null).unref())
      const report = await Promise.race([running, late])
      if (report !== null) return { done: report.left === 0, ...report }
      running.catch((error: unknown) => {
        // A stop waits for no platform: what the run reads after it finds the store closed.
        if (!sync.isStopping()) log.error({ err: error }, 'a run of sync failed')
      })
      return { done: false as const }
    },
  }),
  route('GET /sync/check', {
    operationId: 'checkSync',
    summary: 'Asks the platforms whether everything that sync needs is there.',
    ...ADMIN,
    answer: checkAnswer,
    hasNoHead: true,
    async handle({ environments }, { sync }: SyncDeps) {
      const findings = await sync.check(environments)
      return {
        ok: findings.every(({ isFine }) => isFine),
        findings: findings.map(({ about, isFine, message }) => ({ about, ok: isFine, message })),
      }
    },
  }),
  ...messageRoutes,
  pausing('/sync/pause', true, 'Starts no more calls.'),
  pausing('/sync/resume', false, 'Starts calls again after a pause.'),
]
