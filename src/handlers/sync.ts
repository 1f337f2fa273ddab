/* Roles, groups and the outbound webhooks, which follow access. */

import type { Logger } from 'pino'
import { z } from 'zod'
import type { ChangeType } from '../entitlements/entitlement.js'
import { LatchkeyError } from '../errors.js'
import type { SyncState } from '../operations/metrics.js'
import { PLATFORM_NAMES } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import type { MembershipKey, ShownState } from '../store/membership.js'
import type {
  LoggedMessage,
  MessageFilter,
  MessageKey,
  MessagePage,
  MessageStatus,
} from '../store/messages.js'
import type { TestResult } from '../sync/outbound/outbound.js'
import type { RunOptions, Sync, SyncRun } from '../sync/sync.js'
import { counts, environment, instant, platformCall, toJson } from './answers.js'
import { idText } from './body.js'
import { beginsBeforeItEnds, LATER_THAN_TO } from './events.js'
import {
  firstOf,
  idParameter,
  instantParameter,
  invalidParameter,
  limitParameter,
  pageOf,
  paginated,
  placeIn,
  requireBoth,
} from './query.js'
import { type Route, route } from './route.js'

/** What the routes about the state of roles, groups and the outbound webhooks need. */
export interface SyncQuestions extends Pick<Sync, 'memberships' | 'plan' | 'targets'> {
  /** The ids of the addresses of the outbound webhooks. */
  readonly webhooks: () => readonly string[]
  readonly messages: (filter: MessageFilter, page: MessagePage) => Promise<readonly LoggedMessage[]>
  /** @param environments whose targets and messages are shown; both if omitted */
  readonly status: (environments?: readonly Environment[]) => Promise<SyncState>
}

/** The same, and what the routes need that change it, or call the platforms. */
export interface SyncControl extends SyncQuestions, Pick<Sync, 'check' | 'pause' | 'resume'> {
  /** Sends messages and each customer's later ones again; returns how many. */
  readonly replay: (filter: MessageFilter) => Promise<number>
  /** Null: no address has this id. */
  readonly test: (id: string, type: ChangeType, environment?: Environment) => Promise<TestResult | null>
  /** `messages`: messages of the outbound webhooks that `retry` made due. @throws LatchkeyError `plan_changed` */
  readonly run: (
    options: RunOptions,
  ) => Promise<SyncRun & { readonly messages: number; readonly leads: boolean }>
}

export interface SyncQuestionDeps {
  readonly sync: SyncQuestions
}

export interface SyncDeps {
  readonly sync: SyncControl
  readonly log: Logger
}

const platform = z.enum(PLATFORM_NAMES)
const failure = z.object({ code: z.string(), message: z.string() })
const STATES = [
  'settled',
  'due',
  'retrying',
  'waiting',
  'parked',
  'unconfirmed',
] as const satisfies readonly ShownState[]
const membershipState = z.enum(STATES, `must be one of ${STATES.join(', ')}`)

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

/** One account and one role or group. */
export const membership = z.object({
  environment,
  target: z.string(),
  accountId: z.string(),
  customerId: z.string(),
  state: membershipState,
  desired: z.boolean(),
  desiredSince: instant,
  applied: z.enum(['unknown', 'member', 'absent']),
  appliedAt: instant.nullable(),
  given: z.boolean(),
  attempts: z.int(),
  nextAttemptAt: instant.nullable(),
  parked: failure.nullable(),
  lastError: failure.nullable(),
})
export type MembershipJson = z.input<typeof membership>

const membershipPlace = placeIn<MembershipKey>(
  (text) => {
    try {
      const [of, target, accountId] = z.tuple([environment, z.string(), z.string()]).parse(JSON.parse(text))
      return { environment: of, target, accountId }
    } catch {
      return null
    }
  },
  (key) => JSON.stringify([key.environment, key.target, key.accountId]),
)

const TYPES = [
  'entitlement.granted',
  'entitlement.changed',
  'entitlement.revoked',
] as const satisfies readonly ChangeType[]
const messageType = z.enum(TYPES, `must be one of ${TYPES.join(', ')}`)
const STATUSES = ['pending', 'delivered', 'failed'] as const satisfies readonly MessageStatus[]
const messageStatus = z.enum(STATUSES, `must be one of ${STATUSES.join(', ')}`)

const attempt = { status: z.int().nullable(), error: z.string().nullable(), ms: z.int() }

/** A message of an outbound webhook, and the newest attempts to deliver it. */
export const message = z.object({
  id: z.string(),
  webhook: z.string(),
  type: messageType,
  environment,
  customerId: z.string(),
  productId: z.string(),
  status: messageStatus,
  reason: z.enum(['gone', 'given_up']).nullable(),
  queuedAt: instant,
  nextAttemptAt: instant.nullable(),
  attempts: z.array(z.object({ at: instant, ...attempt })),
})
export type MessageJson = z.input<typeof message>

const messagePlace = placeIn<MessageKey>(
  (text) => {
    const [, cursor, webhook] = /^(\d{1,15}) (.+)$/.exec(text) ?? []
    return webhook === undefined ? null : { cursor: Number(cursor), webhook }
  },
  ({ cursor, webhook }) => `${cursor} ${webhook}`,
)

const replayed = z.object(counts('messages'))
export type MessagesReplayedJson = z.input<typeof replayed>

const tested = z.object({ id: z.string(), delivered: z.boolean(), ...attempt })
export type WebhookTestJson = z.input<typeof tested>

/** In one request. */
const MAX_REPLAYED_IDS = 100
/** All messages with these ids: one for each address. */
const MAX_ADDRESSES = 100

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

const ADMIN = { scope: 'admin', environments: 'shown' } as const

/** Pauses or resumes all calls, in both environments. */
function pausing(path: '/sync/pause' | '/sync/resume', paused: boolean, summary: string): Route<SyncDeps> {
  return route(`POST ${path}`, {
    operationId: paused ? 'pauseSync' : 'resumeSync',
    summary,
    scope: 'admin',
    environments: 'both',
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
  route('GET /sync/memberships', {
    operationId: 'listMemberships',
    summary: 'Who should be, and who is, a member of which role or group.',
    ...ADMIN,
    query: z.object({
      state: membershipState.exactOptional(),
      target: idParameter.exactOptional(),
      customerId: idParameter.exactOptional(),
      limit: limitParameter,
      cursor: membershipPlace.exactOptional(),
    }),
    answer: pageOf(membership, membershipPlace),
    async handle({ query: { cursor, ...filter }, environments }, { sync }: SyncQuestionDeps) {
      const after = cursor === undefined ? {} : { after: cursor }
      const { items, next } = await sync.memberships({ environments, ...filter, ...after })
      if (items.length === 0 && filter.target !== undefined) {
        const problem = targetProblem(filter.target, await sync.targets(environments))
        if (problem !== null) throw invalidParameter('target', problem)
      }
      return { items, pagination: paginated(next) }
    },
  }),
  route('GET /sync/plan', {
    operationId: 'getSyncPlan',
    summary: 'The calls that would be made now; makes none.',
    ...ADMIN,
    answer: planAnswer,
    handle: ({ environments }, { sync }: SyncQuestionDeps) => sync.plan(environments),
  }),
  route('GET /sync/messages', {
    operationId: 'listMessages',
    summary: 'The log of the outbound webhooks, newest first: each message, and the attempts to deliver it.',
    ...ADMIN,
    query: z
      .object({
        id: idParameter.exactOptional(),
        webhook: idParameter.exactOptional(),
        type: messageType.exactOptional().describe('Only messages of this type.'),
        status: messageStatus.exactOptional(),
        customerId: idParameter.exactOptional(),
        from: instantParameter.exactOptional().describe('Only changes at this instant or later.'),
        to: instantParameter.exactOptional().describe('Only changes before this instant.'),
        limit: limitParameter,
        cursor: messagePlace.exactOptional(),
      })
      .refine(beginsBeforeItEnds, LATER_THAN_TO),
    answer: pageOf(message, messagePlace),
    async handle({ query, environments }, { sync }: SyncQuestionDeps) {
      const { id, webhook, limit, cursor: after, ...others } = query
      const which = {
        ...(id !== undefined && { ids: [id] }),
        ...(webhook !== undefined && { webhooks: [webhook] }),
      }
      const page = { order: 'newest first', limit: limit + 1, ...(after && { after }) } as const
      const found = await sync.messages({ environments, ...which, ...others }, page)
      // The log may still hold messages to an address that was taken out of the config.
      if (found.length === 0 && webhook !== undefined) {
        const problem = addressProblem(webhook, sync.webhooks())
        if (problem !== null) throw invalidParameter('webhook', problem)
      }
      return firstOf(found, limit, ({ cursor, webhook: to }) => ({ cursor, webhook: to }))
    },
  }),
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
      running.catch((error: unknown) => log.error({ err: error }, 'a run of sync failed'))
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
  route('POST /sync/messages/replay', {
    operationId: 'replayMessages',
    summary:
      'Sends messages of the log and the later ones of the same customers again, in order and under their ids.',
    ...ADMIN,
    body: z
      .strictObject({
        ids: z.array(idText).min(1, 'is empty').max(MAX_REPLAYED_IDS).exactOptional(),
        from: instantParameter.exactOptional(),
        to: instantParameter.exactOptional(),
        webhook: idText.exactOptional(),
      })
      .refine(({ ids, from }) => (ids === undefined) !== (from === undefined), 'needs either "ids" or "from"')
      .refine(beginsBeforeItEnds, LATER_THAN_TO),
    bodyType: 'json',
    answer: replayed,
    async handle({ body: { webhook, ...filter }, environments }, { sync }: SyncDeps) {
      const problem = webhook === undefined ? null : addressProblem(webhook, sync.webhooks())
      if (problem !== null) throw invalidField('webhook', `The webhook "${webhook}"`, problem)
      if (filter.ids !== undefined) {
        const page = { order: 'oldest first', limit: MAX_REPLAYED_IDS * MAX_ADDRESSES } as const
        const known = await sync.messages({ environments, ids: filter.ids }, page)
        const missing = filter.ids.findIndex((one) => known.every(({ id }) => id !== one))
        if (missing !== -1) {
          const message = `The message "${filter.ids[missing]}"`
          throw invalidField(`ids.${missing}`, message, 'is not in the log, which keeps 30 days')
        }
      }
      const which = { environments, ...filter, ...(webhook !== undefined && { webhooks: [webhook] }) }
      return { messages: await sync.replay(which) }
    },
  }),
  route('POST /sync/webhooks/:webhook/test', {
    operationId: 'testWebhook',
    summary: 'Sends a test message to an address of the outbound webhooks, and answers with what happened.',
    scope: 'admin',
    environments: 'both',
    body: z.strictObject({
      type: messageType.default('entitlement.granted'),
      environment: environment.exactOptional(),
    }),
    answer: tested,
    errors: ['webhook_not_found'],
    async handle({ params, body: { type, environment: of } }, { sync }: SyncDeps) {
      const result = await sync.test(params.webhook, type, of)
      if (result !== null) return result
      throw new LatchkeyError(
        'webhook_not_found',
        `No outbound webhook has the id ${params.webhook}: the config has ${sync.webhooks().join(', ') || 'none'}.`,
      )
    },
  }),
  pausing('/sync/pause', true, 'Starts no more calls.'),
  pausing('/sync/resume', false, 'Starts calls again after a pause.'),
]

/** The problem with a name that nothing has, or had, of what can be named here; null if it is one of them. */
function targetProblem(target: string, names: readonly string[]): string | null {
  if (names.includes(target)) return null
  return names.length === 0
    ? 'must be a role or group of the config, which has none here'
    : `must be one of ${names.join(', ')}`
}

function addressProblem(webhook: string, ids: readonly string[]): string | null {
  if (ids.includes(webhook)) return null
  return `must be the id of an address in the config: ${ids.join(', ') || 'there is none'}`
}

/** The error for a well-formed field of a body that names nothing. @param value how a sentence begins about it */
function invalidField(path: string, value: string, message: string): LatchkeyError {
  return new LatchkeyError('invalid_request', `${value} ${message}.`, { issues: [{ path, message }] })
}
