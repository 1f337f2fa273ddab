import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import { LatchkeyError } from '../errors.js'
import type { ApiKey, ApiScope } from './api-key.js'
import type { FailureLimit } from './failure-limit.js'
import type { RequestMetrics } from './metrics.js'
import { pathOf } from './route.js'

const BEARER = /^bearer +(\S+) *$/i

const HINTS = {
  missing: 'the request carries no key: it needs the header "Authorization: Bearer <key>"',
  wrong: 'no key in api.keys is the one that was sent: it was removed, or mistyped',
}

/**
 * Finds the key that a request carries.
 *
 * @throws LatchkeyError `unauthorized`, the same for whatever is wrong; `rate_limited`, for nobody with a right key;
 * `forbidden` if the key lacks `scope`.
 */
export type Authenticate = (req: IncomingMessage, scope: ApiScope) => ApiKey

export interface AuthenticateDeps {
  /** Asked each time, since a reload may change them. */
  readonly apiKeys: () => readonly ApiKey[]
  readonly failures: FailureLimit
  readonly clientAddress: (req: IncomingMessage) => string
  readonly metrics: Pick<RequestMetrics, 'keyRefused'>
  readonly log: Logger
}

/** Slows down an address that tries keys: each that fails is counted, and logged up to the limit. */
export function createAuthenticate(deps: AuthenticateDeps): Authenticate {
  const { apiKeys, failures, clientAddress, metrics, log } = deps

  function refuse(req: IncomingMessage, what: keyof typeof HINTS): LatchkeyError {
    const address = clientAddress(req)
    metrics.keyRefused(what)
    const { limited, justLimited, retryAfterSeconds } = failures(address)
    if (!limited) {
      log.warn({ method: req.method, route: routeOf(req), address, hint: HINTS[what] }, 'API key refused')
      return new LatchkeyError('unauthorized', 'A valid API key is needed, as "Authorization: Bearer <key>".')
    }
    if (justLimited) {
      log.warn({ address, retryAfterSeconds }, 'more refused API keys of this address are not logged')
    }
    return new LatchkeyError('rate_limited', 'Too many requests from this address had no valid API key.', {
      retryAfterSeconds,
    })
  }

  return (req, scope) => {
    const token = bearerToken(req)
    const key = token === null ? null : findKey(apiKeys(), token)
    if (key === null) throw refuse(req, token === null ? 'missing' : 'wrong')
    if (!key.scopes.includes(scope)) {
      throw new LatchkeyError('forbidden', `This key does not have the scope "${scope}".`)
    }
    return key
  }
}

/** Null where no one token was sent: the hash of nothing must match no key. */
function bearerToken(req: IncomingMessage): string | null {
  const [header = '', ...others] = req.headersDistinct.authorization ?? []
  return others.length === 0 ? (BEARER.exec(header)?.[1] ?? null) : null
}

/** Only the beginning of the path: what follows may name a person. */
function routeOf(req: IncomingMessage): string {
  return `/${pathOf(req.url ?? '').split('/')[1] ?? ''}`
}

/** Compares with every key, in constant time each, so that the time tells nothing about any. */
function findKey(keys: readonly ApiKey[], token: string): ApiKey | null {
  // Node hands header bytes over as latin1 text; this hashes the bytes that were sent.
  const hash = createHash('sha256').update(token, 'latin1').digest()
  let found: ApiKey | null = null
  for (const key of keys) {
    if (timingSafeEqual(Buffer.from(key.sha256, 'hex'), hash)) found = key
  }
  return found
}
