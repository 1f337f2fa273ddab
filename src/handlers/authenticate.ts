import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { LatchkeyError } from '../errors.js'
import type { ApiKey, ApiScope } from './api-key.js'

const BEARER = /^bearer +(\S+) *$/i

/**
 * Finds the key that a request carries.
 *
 * @throws LatchkeyError `unauthorized`, the same for whatever is wrong; `forbidden` if the key lacks `scope`.
 */
export type Authenticate = (req: IncomingMessage, scope: ApiScope) => ApiKey

/** `apiKeys` is asked each time, since a reload may change them. */
export function createAuthenticate({ apiKeys }: { apiKeys: () => readonly ApiKey[] }): Authenticate {
  return (req, scope) => {
    const key = findKey(apiKeys(), bearerToken(req))
    if (key === null) {
      throw new LatchkeyError('unauthorized', 'A valid API key is needed, as "Authorization: Bearer <key>".')
    }
    if (!key.scopes.includes(scope)) {
      throw new LatchkeyError('forbidden', `This key does not have the scope "${scope}".`)
    }
    return key
  }
}

function bearerToken(req: IncomingMessage): string {
  const [header = '', ...others] = req.headersDistinct.authorization ?? []
  return (others.length === 0 && BEARER.exec(header)?.[1]) || ''
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
