import { createHash, hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Logger } from 'pino'
import proxyAddr from 'proxy-addr'
import { LatchkeyError } from '../errors.js'
import { createFailureLimit, type FailureCount } from '../failure-limit.js'
import type { RequestMetrics } from '../operations/metrics.js'
import type { ApiKey, ApiScope } from './api-key.js'
import { pathOf } from './query.js'
import { countHeader, factsOf, markProved } from './server.js'

const BEARER = /^bearer +(\S+) *$/i

/** Per set of keys. A client sends the same header every time; this bounds clients that vary the spaces in it. */
const MAX_REMEMBERED = 1_000

const HINTS = {
  missing: 'the request has no key: send the header "Authorization: Bearer <key>"',
  wrong: 'the key sent is not in api.keys: it was removed, or mistyped',
  expired: 'the key sent has expired',
}

/**
 * Finds the key that a request carries.
 *
 * @param scope that the key needs; `any`: none in particular
 * @throws LatchkeyError `unauthorized`, with the same text whatever is wrong; `key_expired`; `too_many_wrong_keys`, after
 * which a valid key is still let in; `rate_limited`, by the limit of a valid key; `forbidden` if it lacks `scope`.
 */
export type Authenticate = (req: IncomingMessage, scope: NeededScope) => ApiKey

export type NeededScope = ApiScope | 'any'

interface AuthenticateDeps {
  /** Called for each request, since a reload may change the keys. */
  readonly apiKeys: () => readonly ApiKey[]
  /** Called for each request with a valid key. */
  readonly keyUsed: (key: ApiKey) => void
  readonly clientAddress: (req: IncomingMessage) => string
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly metrics: Pick<RequestMetrics, 'keyRefused'>
  readonly log: Logger
}

/** Slows down an address that guesses keys: every failure is counted, and logged up to the limit. */
export function createKeyring(deps: AuthenticateDeps) {
  const { apiKeys, keyUsed, clock, metrics } = deps
  const noteFailure = createFailureLog('API key refused', deps)

  /** @param todo of an expired key */
  function refuse(req: IncomingMessage, what: keyof typeof HINTS, todo?: string): LatchkeyError {
    metrics.keyRefused(what)
    const { limited, retryAfterSeconds } = noteFailure(req, {
      method: req.method,
      route: routeOf(req),
      hint: todo === undefined ? HINTS[what] : `${HINTS[what]}: ${todo}`,
    })
    if (limited) {
      const message = 'Too many requests from this address had no valid API key: send a valid one.'
      return new LatchkeyError('too_many_wrong_keys', message, { retryAfterSeconds })
    }
    return todo === undefined
      ? new LatchkeyError('unauthorized', 'Send a valid API key, as "Authorization: Bearer <key>".')
      : new LatchkeyError('key_expired', `This API key has expired: ${todo}.`)
  }

  const keyOf = createKeyMemory(apiKeys)
  const limitKey = createKeyLimits(clock)

  /** Lets in a request with this key, unless it has expired, is used too often, or lacks the scope. */
  function admit(req: IncomingMessage, key: ApiKey, scope: NeededScope): ApiKey {
    if (key.expiresAt !== null && key.expiresAt <= clock()) {
      const todo = key.isReplaced
        ? 'it was replaced, so use the new key with its name'
        : 'create a new one with `latchkey keys rotate`'
      throw refuse(req, 'expired', todo)
    }
    markProved(req)
    factsOf(req).keyName = key.name
    keyUsed(key)
    if (key.rateLimit !== null) limitKey(key.name, key.rateLimit)
    if (scope !== 'any' && !key.scopes.includes(scope)) {
      throw new LatchkeyError('forbidden', `This key does not have the scope "${scope}".`)
    }
    return key
  }

  return {
    authenticate: ((req, scope) => {
      const header = onlyAuthorization(req)
      const key = header === null ? null : keyOf(header)
      if (key === null) throw refuse(req, header === null || tokenIn(header) === null ? 'missing' : 'wrong')
      return admit(req, key, scope)
    }) satisfies Authenticate,
    /** The key with this text, which came in the body of a request. Throws as `authenticate`. */
    exchange(req: IncomingMessage, token: string): ApiKey {
      const key = findKey(apiKeys(), Buffer.from(token))
      if (key === null) throw refuse(req, token === '' ? 'missing' : 'wrong')
      return admit(req, key, 'any')
    },
    admit,
  }
}

/**
 * Finds the key in a header. A valid key is remembered by the hash of the header, so that only its first request pays
 * for the comparison. Invalid ones are never remembered.
 */
function createKeyMemory(apiKeys: () => readonly ApiKey[]): (header: string) => ApiKey | null {
  const remembered = new Map<string, ApiKey>()
  let keys: readonly ApiKey[] = []
  return (header) => {
    const current = apiKeys()
    if (current !== keys) remembered.clear()
    keys = current
    const name = hash('sha256', header, 'base64')
    const known = remembered.get(name)
    if (known !== undefined) return known
    const token = tokenIn(header)
    // Node decodes header bytes as latin1; this hashes the bytes that were sent.
    const found = token === null ? null : findKey(keys, Buffer.from(token, 'latin1'))
    if (found === null) return null
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    remembered.set(name, found)
    return found
  }
}

/**
 * Counts the requests of each key: as many as its burst at once, and so many a second after that. The keys before and
 * after a rotation share one limit.
 *
 * @returns throws LatchkeyError `rate_limited`
 */
function createKeyLimits(clock: () => number) {
  const buckets = new Map<string, { left: number; at: number }>()
  return (name: string, { perSecond, burst }: NonNullable<ApiKey['rateLimit']>): void => {
    const now = clock()
    const bucket = buckets.get(name) ?? { left: burst, at: now }
    buckets.set(name, bucket)
    bucket.left = Math.min(burst, bucket.left + (Math.max(0, now - bucket.at) / 1000) * perSecond)
    bucket.at = now
    if (bucket.left < 1) {
      const retryAfterSeconds = Math.ceil((1 - bucket.left) / perSecond)
      const message = `This key may send ${perSecond} requests a second: wait, or raise its rateLimit in the config.`
      throw new LatchkeyError('rate_limited', message, { retryAfterSeconds })
    }
    bucket.left -= 1
  }
}

/** Null if there is no such header or several: Node would return only the first. */
function onlyAuthorization(req: IncomingMessage): string | null {
  return countHeader(req, 'authorization') === 1 ? (req.headers.authorization ?? null) : null
}

/** Null if there is no token, so that the hash of an empty text matches no key. */
function tokenIn(header: string): string | null {
  return BEARER.exec(header)?.[1] ?? null
}

/** Only the beginning of the path: the rest may name a person. */
function routeOf(req: IncomingMessage): string {
  return `/${pathOf(req.url ?? '').split('/')[1] ?? ''}`
}

/** Compares with every key, each in constant time, so that timing reveals nothing about any of them. */
function findKey(keys: readonly ApiKey[], token: Buffer): ApiKey | null {
  const sent = createHash('sha256').update(token).digest()
  let found: ApiKey | null = null
  for (const key of keys) {
    if (timingSafeEqual(Buffer.from(key.sha256, 'hex'), sent)) found = key
  }
  return found
}

/**
 * Counts failed requests, and logs those up to the limit of their address and one more, so that nobody can fill the
 * disk from outside.
 */
export function createFailureLog(
  message: string,
  { clientAddress, log }: Pick<AuthenticateDeps, 'clientAddress' | 'log'>,
): (req: IncomingMessage, fields: object) => FailureCount {
  const failures = createFailureLimit()
  return (req, fields) => {
    const address = clientAddress(req)
    const count = failures(address)
    const { limited, justLimited, retryAfterSeconds } = count
    const { id: requestId } = factsOf(req)
    if (!limited) log.warn({ requestId, ...fields, address }, message)
    if (justLimited)
      log.warn(
        { requestId, address, retryAfterSeconds },
        `${message}: too many from this address, no longer logging them`,
      )
    return count
  }
}

/**
 * Finds the address of the client. Only the last `trustProxy` hops of `X-Forwarded-For` are trusted; with 0 the header
 * is ignored, so that clients can't choose their address.
 */
export function createClientAddress(trustProxy: number): (req: IncomingMessage) => string {
  return (req) => {
    const own = req.socket.remoteAddress ?? 'unknown'
    if (trustProxy === 0) return own
    const forwarded = proxyAddr(req, (_address, hop) => hop < trustProxy)
    return isIP(forwarded) === 0 ? own : forwarded
  }
}
