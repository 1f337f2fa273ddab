import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { Customer, Invite, InviteRequest, LinkToken } from '../sync/telegram/join-links.js'
import type { Authenticate } from './authenticate.js'
import { ENVIRONMENT_ONLY, readEnvironment } from './environment.js'
import { readQuery } from './query.js'
import { readJson } from './read-json.js'

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
 * Whom a link is for, and what else is asked of it, once the key is seen to have the right to ask.
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`, `platform_not_configured`
 */
export async function readJoinLink<Schema extends z.ZodType>(
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
