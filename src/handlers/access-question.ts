import type { IncomingMessage } from 'node:http'
import type { AccessAnswer } from '../entitlements/answer.js'
import type { Environment } from '../provider/event.js'
import type { Authenticate } from './authenticate.js'
import { readEnvironment } from './environment.js'
import { readInstant, readQuery } from './query.js'

const PARAMETERS = ['environment', 'at'] as const

/** What the entitlement routes ask. `at`: epoch milliseconds, or null for now. */
export interface AccessQuestion {
  readonly environment: Environment
  readonly customerId: string
  readonly at: number | null
}

/** What the entitlement routes need. */
export interface AccessDeps {
  readonly authenticate: Authenticate
  /** The environments of the configured endpoints; asked each time, since a reload may change them. */
  readonly environments: () => readonly Environment[]
  /** Rejects with `store_unavailable` where the store can't tell: never with an empty answer. */
  readonly readAccess: (question: AccessQuestion) => Promise<AccessAnswer>
}

/**
 * Answers the question that a request puts, once its key is seen to have the right to.
 *
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`, `store_unavailable`.
 */
export async function askAccess(
  req: IncomingMessage,
  customerId: string,
  deps: AccessDeps,
): Promise<AccessAnswer> {
  return deps.readAccess(readQuestion(req, customerId, deps))
}

/**
 * Reads the question that a request puts, once its key is seen to have the right to.
 *
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`.
 */
export function readQuestion(
  req: IncomingMessage,
  customerId: string,
  { authenticate, environments }: Pick<AccessDeps, 'authenticate' | 'environments'>,
): AccessQuestion {
  const key = authenticate(req, 'read')
  const query = readQuery(req, PARAMETERS)
  const environment = readEnvironment(query, environments(), key)
  return { environment, customerId, at: readInstant(query, 'at') }
}
