import type { IncomingMessage } from 'node:http'
import { type ErrorCode, isLatchkeyError } from '../errors.js'
import type { RefusalDeps } from './refuse-delivery.js'

export interface UnreadRefusalDeps extends RefusalDeps {
  /** Those that are configured. */
  readonly endpointNames: () => readonly string[]
}

/** Why a delivery gets no further than its path, its headers or its body. */
const UNREAD = [
  'endpoint_not_found',
  'body_too_large',
  'body_incomplete',
  'encoding_not_supported',
  'not_stored',
] as const satisfies readonly ErrorCode[]
type UnreadCode = (typeof UNREAD)[number]

/**
 * Counts and logs a delivery whose signature was never looked at; the log says what the operator can do about it, and
 * nothing that the sender chose. Over the limit of its address it is still counted, and no longer logged.
 *
 * @throws always what it is told of, so that the limit changes no answer
 */
export function createUnreadRefusal({
  failures,
  clientAddress,
  metrics,
  log,
  endpointNames,
}: UnreadRefusalDeps) {
  return async (req: IncomingMessage, endpoint: string | null, error: unknown): Promise<never> => {
    const code = isLatchkeyError(error) ? UNREAD.find((one) => one === error.code) : undefined
    // By another method it was no delivery; anything else is a bug.
    if (req.method !== 'POST' || code === undefined) throw error
    const address = clientAddress(req)
    metrics.refused(code)

    const { limited, justLimited, retryAfterSeconds } = failures(address)
    const where = endpoint === null ? {} : { endpoint }
    if (!limited)
      log.warn({ ...where, code, address, hint: hintOf(code, endpointNames()) }, 'delivery refused')
    else if (justLimited) {
      log.warn({ address, retryAfterSeconds }, 'more refused deliveries of this address are not logged')
    }
    throw error
  }
}

function hintOf(code: UnreadCode, endpointNames: readonly string[]): string {
  switch (code) {
    case 'endpoint_not_found':
      return `its path ends with no endpoint's name: send it to /webhooks/ and one of ${endpointNames.join(', ')}`
    case 'body_too_large':
      return 'larger than any event, or in thousands of small pieces: not from the payments service, or not meant for here'
    case 'body_incomplete':
      return 'its sender went away before its end, or took too long: look at the proxy and the network between'
    case 'encoding_not_supported':
      return 'compressed: not from the payments service, or a proxy changed the body'
    case 'not_stored':
      return 'the bodies that are being received hold all the memory there is for them: many large ones come at once'
    default:
      return code satisfies never
  }
}
