import { createHash, hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Logger } from 'pino'
import proxyAddr from 'proxy-addr'
import { LatchkeyError } from '../errors.js'
import type { RequestMetrics } from '../operations/metrics.js'
import type { ApiKey, ApiScope } from './api-key.js'
import { pathOf } from './query.js'
import { markProved } from './server.js'

const BEARER = /^bearer +(\S+) *$/i

/** Of one set of keys. A caller sends the same header each time; this bounds those who vary the spaces in it. */
const MAX_REMEMBERED = 1_000

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

interface AuthenticateDeps {
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

  const keyOf = createKeyMemory(apiKeys)
  return (req, scope) => {
    const header = onlyAuthorization(req)
    const key = header === null ? null : keyOf(header)
    if (key === null) throw refuse(req, header === null || tokenIn(header) === null ? 'missing' : 'wrong')
    markProved(req)
    if (!key.scopes.includes(scope)) {
      throw new LatchkeyError('forbidden', `This key does not have the scope "${scope}".`)
    }
    return key
  }
}

/**
 * Finds the key that a header carries. A right one is remembered by the hash of the header, so that only its first
 * request pays for the comparison; a wrong one never is.
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
    const found = token === null ? null : findKey(keys, token)
    if (found === null) return null
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    remembered.set(name, found)
    return found
  }
}

/** Null where there is none, and where there are several, of which Node would give the first. */
function onlyAuthorization({ headers, rawHeaders }: IncomingMessage): string | null {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]
    if (name?.length === 13 && name.toLowerCase() === 'authorization') count += 1
  }
  return count === 1 ? (headers.authorization ?? null) : null
}

/** Null where there is no token: the hash of nothing must match no key. */
function tokenIn(header: string): string | null {
  return BEARER.exec(header)?.[1] ?? null
}

/** Only the beginning of the path: what follows may name a person. */
function routeOf(req: IncomingMessage): string {
  return `/${pathOf(req.url ?? '').split('/')[1] ?? ''}`
}

/** Compares with every key, in constant time each, so that the time tells nothing about any. */
function findKey(keys: readonly ApiKey[], token: string): ApiKey | null {
  // Node hands header bytes over as latin1 text; this hashes the bytes that were sent.
  const sent = createHash('sha256').update(token, 'latin1').digest()
  let found: ApiKey | null = null
  for (const key of keys) {
    if (timingSafeEqual(Buffer.from(key.sha256, 'hex'), sent)) found = key
  }
  return found
}

/** What one address may get wrong: enough for a merchant who is trying out a secret by hand. */
const FAILURES_PER_WINDOW = 30
const WINDOW_SECONDS = 60

/** Addresses share this many counters, which bounds the memory; who shares one is limited together. */
const COUNTERS = 16_384

/** Where an address stands after one more failure. */
interface FailureCount {
  readonly limited: boolean
  /** True for the one failure that went over the limit, so that it can be said once. */
  readonly justLimited: boolean
  readonly retryAfterSeconds: number
}

/** Counts what an address got wrong: failed signatures, wrong keys. It never sees what is authentic. */
type FailureLimit = (address: string) => FailureCount

/** Limits what an address may get wrong, by default 30 failures in 60 seconds. */
export function createFailureLimit({
  failures = FAILURES_PER_WINDOW,
  windowSeconds = WINDOW_SECONDS,
}: {
  failures?: number
  windowSeconds?: number
} = {}): FailureLimit {
  const windows = new Map<number, { count: number; readonly endsAt: number }>()
  return (address) => {
    const counter = counterOf(address)
    const now = performance.now()
    let window = windows.get(counter)
    if (window === undefined || window.endsAt <= now) {
      window = { count: 0, endsAt: now + windowSeconds * 1000 }
      windows.set(counter, window)
    }
    window.count += 1
    return {
      limited: window.count > failures,
      justLimited: window.count === failures + 1,
      retryAfterSeconds: Math.ceil((window.endsAt - now) / 1000),
    }
  }
}

function counterOf(address: string): number {
  return createHash('sha256').update(address).digest().readUInt32BE() % COUNTERS
}

/**
 * Tells who sent a request. Only the last `trustProxy` hops are believed about whom they forward for:
 * with 0, `X-Forwarded-For` counts for nothing, so that nobody can choose an address.
 */
export function createClientAddress(trustProxy: number): (req: IncomingMessage) => string {
  return (req) => {
    const own = req.socket.remoteAddress ?? 'unknown'
    if (trustProxy === 0) return own
    const forwarded = proxyAddr(req, (_address, hop) => hop < trustProxy)
    return isIP(forwarded) === 0 ? own : forwarded
  }
}
