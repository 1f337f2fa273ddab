import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Act, ActResult, PerformAct } from '../ingest/manual-acts.js'
import type { Environment } from '../provider/event.js'
import { isPlainText, isUsableId } from '../provider/ids.js'
import type { Authenticate } from './authenticate.js'
import { accessJson } from './entitlement-json.js'
import { ENVIRONMENT_ONLY, readEnvironment, readQuery } from './query.js'

/** Long enough for a sentence or two; it is stored with the event for good. */
const MAX_REASON_LENGTH = 1_000
const MAX_IDEMPOTENCY_KEY_LENGTH = 255

/** What the routes by which operators act need. */
export interface ManualActDeps {
  readonly authenticate: Authenticate
  readonly environments: () => readonly Environment[]
  readonly performAct: PerformAct
}

export const idText = z
  .string()
  .refine(isUsableId, 'is not an id: 1 to 255 characters, none a control character')
export const reasonText = z
  .string()
  .trim()
  .min(1, 'is empty')
  .refine(
    (text) => isPlainText(text, MAX_REASON_LENGTH),
    `is over ${MAX_REASON_LENGTH} characters, or more than a line`,
  )

/**
 * Who asks for an act, once their key is seen to have the right to; the body is read only after that.
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`
 */
export function authorizeAct(req: IncomingMessage, { authenticate, environments }: ManualActDeps) {
  const key = authenticate(req, 'write')
  const environment = readEnvironment(readQuery(req, ENVIRONMENT_ONLY), environments(), key)
  return { actor: key.name, environment, idempotencyKey: readIdempotencyKey(req) }
}

export interface ActBody {
  readonly customerId: string
  readonly act: Act
  readonly reason: string | null
}

/** Does it, and answers with what the customer may use since. */
export async function act(
  authorized: ReturnType<typeof authorizeAct>,
  { customerId, ...what }: ActBody,
  { performAct }: ManualActDeps,
) {
  if (!isUsableId(customerId)) {
    const issues = [{ path: 'customerId', message: 'is not an id' }]
    throw new LatchkeyError('invalid_request', 'The path is not valid.', { issues })
  }
  return actJson(await performAct({ ...authorized, customerId, ...what }))
}

/** The answer to an act, as it goes over the wire. */
export function actJson({ eventId, access }: ActResult) {
  return { eventId, ...accessJson(access) }
}

function readIdempotencyKey(req: IncomingMessage): string | null {
  const [key, ...others] = req.headersDistinct['idempotency-key'] ?? []
  if (key === undefined) return null
  if (others.length === 0 && key !== '' && key.length <= MAX_IDEMPOTENCY_KEY_LENGTH) return key
  const issues = [{ path: 'Idempotency-Key', message: 'must be given once, with 1 to 255 characters' }]
  throw new LatchkeyError('invalid_request', 'The header is not valid.', { issues })
}
