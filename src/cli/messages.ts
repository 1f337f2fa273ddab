import { counted } from '../doctor/finding.js'
import { CHANGE_TYPES } from '../entitlements/entitlement.js'
import { LatchkeyError } from '../errors.js'
import type { MessageJson, MessagesReplayedJson, WebhookTestJson } from '../handlers/sync/messages.js'
import { apiCommand, choice, isoTime, limitTo, parseId, parseInstant, showPage, value } from './command.js'
import { pathOf } from './known.js'

export const messageCommands = [
  apiCommand('sync messages', {
    kind: 'asks',
    about: 'show the messages of the outbound webhooks and the last attempt of each, newest first',
    examples: [
      'sync messages',
      'sync messages --webhook crm --status failed',
      'sync messages --id msg_1f0c_7 --json',
    ],
    environment: 'only this environment (default: both)',
    options: {
      webhook: value('<id>', 'only to this address', parseId),
      status: choice('<status>', 'only with this status', ['pending', 'delivered', 'failed']),
      type: choice('<type>', 'only of this type', CHANGE_TYPES),
      customer: value('<id>', 'only about this customer', parseId),
      id: value('<message>', 'only with this webhook-id', parseId),
      limit: limitTo(20),
    },
    run(given) {
      const { webhook, status, type, customer: customerId, id, limit, environment } = given.options
      const query = { environment, webhook, status, type, customerId, id, limit }
      return showPage('/sync/messages', query, messageCells, 'no message matches', given)
    },
  }),
  apiCommand('sync replay [message]', {
    kind: 'changes',
    about:
      'send messages of the outbound webhooks again with the same ids, and all later ones of their customers',
    arguments: { message: 'the webhook-id of one message' },
    examples: ['sync replay msg_1f0c_7', 'sync replay --webhook crm --from 2026-03-01T00:00:00Z'],
    environment: 'only this environment (default: both)',
    options: {
      from: value('<time>', 'messages about changes at or after this time', parseInstant),
      to: value('<time>', 'and before this time (default: now)', parseInstant),
      webhook: value('<id>', 'only to this address (default: all)', parseId),
    },
    check({ args: [id], options: { from, webhook } }) {
      if (id !== undefined && from !== undefined)
        throw new LatchkeyError('usage', 'pass a message or --from, not both')
      if (id === undefined && from === undefined) {
        const which = webhook === undefined ? 'pass a message or --from <time>' : 'pass --from <time>'
        throw new LatchkeyError('usage', which)
      }
    },
    async run({ api, args: [id], options: { from, to, webhook, environment }, show }) {
      const ids = id === undefined ? undefined : [id]
      const body = { ids, from: isoTime(from), to: isoTime(to), webhook }
      const request = { query: { environment }, body }
      const { messages } = await api.send<MessagesReplayedJson>('POST', '/sync/messages/replay', request)
      show({ messages }, () => `${counted(messages, 'message')} to send again\n`)
    },
  }),
  apiCommand('sync test <webhook>', {
    kind: 'changes',
    about: 'send a test message to an outbound webhook, and show the answer',
    arguments: { webhook: 'the id of the address; default, if it is in sync.webhook' },
    examples: ['sync test default', 'sync test crm --type entitlement.revoked'],
    environment: 'the environment in the message (default: the first of the address)',
    options: {
      type: choice('<type>', 'the type of the message (default: entitlement.granted)', CHANGE_TYPES),
    },
    async run({ api, args: [webhook = ''], options: { type, environment }, show }) {
      const path = pathOf('sync', 'webhooks', webhook, 'test')
      const result = await api.send<WebhookTestJson>('POST', path, { body: { type, environment } })
      const { id, delivered, status, error, ms } = result
      show(result, () => `${id}: ${status === null ? error : `answered ${status}`} in ${ms} ms\n`)
      const refused = 'the receiver did not accept the message: fix it and test again'
      if (!delivered) throw new LatchkeyError('checks_failed', refused)
    },
  }),
]

function messageCells(one: MessageJson): readonly string[] {
  const { id, webhook, type, customerId, productId, status, nextAttemptAt, attempts } = one
  const last = attempts.at(-1)
  const result = last === undefined ? '' : `${last.at} ${last.status ?? last.error} in ${last.ms} ms`
  const next = last === undefined || nextAttemptAt === null ? '' : `again at ${nextAttemptAt}`
  return [id, webhook, type, customerId, productId, status, result, next]
}
