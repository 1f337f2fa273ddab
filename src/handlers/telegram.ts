/* Telegram: links for customers. */

import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { PersonKey } from '../store/schema.js'
import type { Invite, InviteRequest, LinkToken } from '../sync/telegram/join-links.js'
import { instant } from './answers.js'
import { idText } from './body.js'
import { type Route, route } from './route.js'

/** The parts of the messenger that the routes need. */
export interface Messenger {
  readonly linkToken: (customer: PersonKey) => Promise<LinkToken & { readonly url: string }>
  readonly invite: (request: InviteRequest) => Promise<readonly Invite[]>
}

export interface TelegramDeps {
  /** Null if none is configured; called each time, since a reload may change it. */
  readonly messenger: () => Messenger | null
}

/** @throws LatchkeyError `platform_not_configured` */
function messengerOf({ messenger }: TelegramDeps): Messenger {
  const found = messenger()
  if (found !== null) return found
  throw new LatchkeyError('platform_not_configured', 'No messenger is configured (sync.telegram).')
}

const LINK_ERRORS = [
  'customer_erased',
  'platform_not_configured',
  'platform_unavailable',
  'platform_refused',
] as const

export const telegramRoutes: readonly Route<TelegramDeps>[] = [
  route('POST /customers/:customerId/link-tokens', {
    operationId: 'createLinkToken',
    summary:
      'A one-time link to the messenger’s bot: the first account that follows it is linked to the customer.',
    scope: 'write',
    environments: 'one',
    body: z.strictObject({}),
    answer: z.object({ url: z.string(), token: z.string(), expiresAt: instant }),
    status: 201,
    errors: LINK_ERRORS,
    handle: ({ params, environment }, deps: TelegramDeps) =>
      messengerOf(deps).linkToken({ environment, ...params }),
  }),
  route('POST /customers/:customerId/invites', {
    operationId: 'createInvites',
    summary: 'A link to each group that the customer’s access opens.',
    scope: 'write',
    environments: 'one',
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
]
