/* Telegram: links for customers, and the updates that it delivers. */

import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Customer } from '../sync/telegram/context.js'
import type { Invite, InviteRequest, LinkToken } from '../sync/telegram/join-links.js'
import { instant } from './answers.js'
import { createFailureLog } from './authenticate.js'
import { idText, parseJson, readBody } from './body.js'
import { ACTED_ON } from './customers.js'
import { methodNotAllowed } from './mount.js'
import { plainRoute, type RawHandler, type Route, route } from './route.js'
import { sendJson } from './send.js'

/** The parts of the messenger that the routes need. */
export interface Messenger {
  readonly linkToken: (customer: Customer) => Promise<LinkToken & { readonly url: string }>
  readonly invite: (request: InviteRequest) => Promise<readonly Invite[]>
  /** Null: updates are polled, not delivered. */
  readonly updates: {
    readonly secret: string
    readonly handle: (update: unknown) => Promise<void>
  } | null
}

export interface TelegramDeps {
  /** Null if none is configured; called each time, since a reload may change it. */
  readonly messenger: () => Messenger | null
  readonly clientAddress: (req: IncomingMessage) => string
  readonly log: Logger
}

/** @throws LatchkeyError `platform_not_configured` */
function messengerOf({ messenger }: TelegramDeps): Messenger {
  const found = messenger()
  if (found !== null) return found
  throw new LatchkeyError('platform_not_configured', 'No messenger is configured (sync.telegram).')
}

const LINK_ERRORS = ['platform_not_configured', 'platform_unavailable', 'platform_refused'] as const

export const UPDATES_PATH = '/platforms/telegram/updates'

export const telegramRoutes: readonly Route<TelegramDeps>[] = [
  route('POST /customers/:customerId/link-tokens', {
    summary:
      'A one-time link to the messenger’s bot: the first account that follows it is linked to the customer.',
    scope: 'write',
    environments: 'one',
    params: ACTED_ON,
    body: z.strictObject({}),
    answer: z.object({ url: z.string(), token: z.string(), expiresAt: instant }),
    status: 201,
    errors: LINK_ERRORS,
    handle: ({ params, environment }, deps: TelegramDeps) =>
      messengerOf(deps).linkToken({ environment, ...params }),
  }),
  route('POST /customers/:customerId/invites', {
    summary: 'A link to each group that the customer’s access opens.',
    scope: 'write',
    environments: 'one',
    params: ACTED_ON,
    body: z
      .strictObject({ productId: idText.nullish(), groupId: idText.nullish() })
      .refine(
        ({ productId, groupId }) => productId == null || groupId == null,
        'names both productId and groupId: one of them, or neither for all groups',
      ),
    answer: z.object({
      invites: z.array(z.object({ groupId: z.string(), url: z.string(), expiresAt: instant })),
    }),
    status: 201,
    errors: ['group_not_found', 'not_entitled', ...LINK_ERRORS],
    async handle({ params, body: { productId = null, groupId = null }, environment }, deps: TelegramDeps) {
      const asked = { environment, ...params, productId, groupId }
      return { invites: await messengerOf(deps).invite(asked) }
    },
  }),
  plainRoute(`POST ${UPDATES_PATH}`, {
    summary: 'Takes one update from Telegram. Any answer but 200 makes Telegram send it again.',
    scope: null,
    environments: 'none',
    query: 'any',
    body: z.unknown(),
    answer: z.object({}),
    errors: ['route_not_found', 'unauthorized', 'store_unavailable'],
    plain: receiveUpdate,
  }),
]

/** Far more than a message of maximum length. */
const MAX_UPDATE_BYTES = 256 * 1024
const SECRET_HEADER = 'x-telegram-bot-api-secret-token'
const REFUSED_HINT =
  'not from Telegram, or a proxy dropped the header, or another program set the webhook of this bot: see `latchkey sync check`'

function receiveUpdate(deps: TelegramDeps): RawHandler {
  const { messenger } = deps
  const noteRefusal = createFailureLog(
    'a Telegram update was refused: its secret token is missing or wrong',
    deps,
  )

  return async (req, res) => {
    const updates = messenger()?.updates ?? null
    if (updates === null) throw new LatchkeyError('route_not_found', 'Updates are not delivered here.')
    if (req.method !== 'POST') throw methodNotAllowed(res, 'POST')
    if (!isProved(req, updates.secret)) {
      noteRefusal(req, { hint: REFUSED_HINT })
      throw new LatchkeyError(
        'unauthorized',
        'The update does not carry the secret of sync.telegram.updates.',
      )
    }
    await updates.handle(parseJson(await readBody(req, MAX_UPDATE_BYTES)))
    sendJson(res, 200, {})
  }
}

/** Compares hashes in constant time, so that timing reveals nothing about the secret or its length. */
function isProved(req: IncomingMessage, secret: string): boolean {
  const [sent = '', ...others] = req.headersDistinct[SECRET_HEADER] ?? []
  return others.length === 0 && timingSafeEqual(sha256(sent), sha256(secret))
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text, 'latin1').digest()
}
