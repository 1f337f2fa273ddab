import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { Customer, Invite, InviteRequest, LinkToken } from '../sync/telegram/join-links.js'
import type { Authenticate } from './authenticate.js'
import { readJson } from './body.js'
import { iso } from './entitlement-json.js'
import { idText } from './manual-act.js'
import { ENVIRONMENT_ONLY, readEnvironment, readQuery } from './query.js'
import { requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'

/** The messenger, as far as the routes need it. */
export interface Messenger {
  readonly linkToken: (customer: Customer) => Promise<LinkToken & { readonly url: string }>
  readonly invite: (request: InviteRequest) => Promise<readonly Invite[]>
  /** Null: updates are not delivered, but fetched. */
  readonly updates: {
    readonly secret: string
    readonly handle: (update: unknown) => Promise<void>
  } | null
}

export interface JoinLinksDeps {
  readonly authenticate: Authenticate
  readonly environments: () => readonly Environment[]
  /** Null where none is configured; asked each time, since a reload may change it. */
  readonly messenger: () => Messenger | null
}

/**
 * POST /customers/:customerId/link-tokens: a one-time link to the messenger's bot. The first account that
 * follows it is taken for the customer's.
 */
export function postLinkToken(deps: JoinLinksDeps): RawHandler<'customerId'> {
  return async (req, res, { customerId }) => {
    requireMethod(req, res, 'POST')
    const { customer, messenger } = await readJoinLink(req, customerId, z.strictObject({}), deps)
    const { url, token, expiresAt } = await messenger.linkToken(customer)
    sendJson(res, 201, { url, token, expiresAt: iso(expiresAt) })
  }
}

const inviteBody = z
  .strictObject({ productId: idText.nullish(), groupId: idText.nullish() })
  .refine(
    ({ productId, groupId }) => productId == null || groupId == null,
    'names both productId and groupId: one of them, or neither for all groups',
  )

/** POST /customers/:customerId/invites: a link to each group that the customer's access opens. */
export function postInvites(deps: JoinLinksDeps): RawHandler<'customerId'> {
  return async (req, res, { customerId }) => {
    requireMethod(req, res, 'POST')
    const { customer, body, messenger } = await readJoinLink(req, customerId, inviteBody, deps)
    const { productId = null, groupId = null } = body
    const invites = await messenger.invite({ ...customer, productId, groupId })
    sendJson(res, 201, {
      invites: invites.map((one) => ({ ...one, expiresAt: iso(one.expiresAt) })),
    })
  }
}

/**
 * Whom a link is for, and what else is asked of it, once the key is seen to have the right to ask.
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`, `platform_not_configured`
 */
async function readJoinLink<Schema extends z.ZodType>(
  req: IncomingMessage,
  customerId: string,
  schema: Schema,
  { authenticate, environments, messenger: current }: JoinLinksDeps,
) {
  const key = authenticate(req, 'write')
  const environment = readEnvironment(readQuery(req, ENVIRONMENT_ONLY), environments(), key)
  const body = await readJson(req, schema)
  if (!isUsableId(customerId)) {
    const issues = [{ path: 'customerId', message: 'is not an id' }]
    throw new LatchkeyError('invalid_request', 'The path is not valid.', { issues })
  }
  const messenger = current()
  if (messenger === null) {
    throw new LatchkeyError('platform_not_configured', 'No messenger is configured (sync.telegram).')
  }
  return { customer: { environment, customerId }, body, messenger }
}
