/* Messages of the outbound webhooks. */

import { z } from 'zod'
import type { ChangeType } from '../../entitlements/entitlement.js'
import { LatchkeyError } from '../../errors.js'
import { findMessages, type MessageKey, type MessageStatus } from '../../store/message-log.js'
import { counts, environment, instant } from '../answers.js'
import { idText, invalidField } from '../body.js'
import { beginsBeforeItEnds, LATER_THAN_TO } from '../events.js'
import {
  firstOf,
  idParameter,
  instantParameter,
  invalidParameter,
  limitParameter,
  pageOf,
  placeIn,
} from '../query.js'
import { ADMIN, ADMIN_OF_BOTH, type Route, route } from '../route.js'
import type { SyncDeps, SyncQuestionDeps } from './deps.js'

/** When a message of each type is sent. */
export const MESSAGE_TYPES = {
  'entitlement.granted': 'The customer had no access to the product, and has it now.',
  'entitlement.changed': 'Anything else changed, such as the end of the access.',
  'entitlement.revoked': 'The customer had access, and has none now.',
} as const satisfies Record<ChangeType, string>
const messageType = z.enum(
  Object.keys(MESSAGE_TYPES) as ChangeType[],
  `must be one of ${Object.keys(MESSAGE_TYPES).join(', ')}`,
)
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
    const [, cursor, webhook] = /^(\d{1,16}) (.+)$/.exec(text) ?? []
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

export const messageQuestions: readonly Route<SyncQuestionDeps>[] = [
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
    async handle({ query, environments }, { sync, db }: SyncQuestionDeps) {
      const { id, webhook, limit, cursor: after, ...others } = query
      const which = {
        ...(id !== undefined && { ids: [id] }),
        ...(webhook !== undefined && { webhooks: [webhook] }),
      }
      const page = { order: 'newest first', limit: limit + 1, ...(after && { after }) } as const
      const found = await findMessages(db, { environments, ...which, ...others }, page)
      // The log may still hold messages to an address that was taken out of the config.
      if (found.length === 0 && webhook !== undefined) {
        const problem = addressProblem(webhook, sync.webhooks())
        if (problem !== null) throw invalidParameter('webhook', problem)
      }
      return firstOf(found, limit, ({ cursor, webhook: to }) => ({ cursor, webhook: to }))
    },
  }),
]

export const messageRoutes: readonly Route<SyncDeps>[] = [
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
    async handle({ body: { webhook, ...filter }, environments }, { sync, db }: SyncDeps) {
      const problem = webhook === undefined ? null : addressProblem(webhook, sync.webhooks())
      if (problem !== null) throw invalidField('webhook', `The webhook "${webhook}"`, problem)
      if (filter.ids !== undefined) {
        const page = { order: 'oldest first', limit: MAX_REPLAYED_IDS * MAX_ADDRESSES } as const
        const known = await findMessages(db, { environments, ids: filter.ids }, page)
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
    ...ADMIN_OF_BOTH,
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
]

function addressProblem(webhook: string, ids: readonly string[]): string | null {
  if (ids.includes(webhook)) return null
  return `must be the id of an address in the config: ${ids.join(', ') || 'there is none'}`
}
