/* Who is signed in to the console: sealed cookies, and links that sign in once. */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { ApiKey } from '../api-key.js'

/** A session ends when it was not used for so long. */
export const IDLE_MS = 8 * 3_600_000
/** A cookie is renewed by a request so long after it was made: not by each. */
const RENEWED_AFTER_MS = 5 * 60_000
/** The clocks of several daemons on one database differ a little. */
const CLOCKS_APART_MS = 60_000
const LINK_MS = 60_000
/** More at once only come from a broken script: the oldest are forgotten. */
const MAX_LINKS = 100
const MAX_SIGNED_OUT = 10_000

/** The beginning of a hash names a key as well as the whole. */
const nameOf = ({ sha256 }: ApiKey): string => sha256.slice(0, 16) || 'local'

interface SessionsDeps {
  /** Shared by all daemons on one database, and not changed by a restart. */
  readonly secret: Buffer
  /** Called each time, since a reload may change them. */
  readonly apiKeys: () => readonly ApiKey[]
  /** The key of the local socket, for sessions that begin there: it has no hash. */
  readonly localKey: ApiKey
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/** A session as its cookie says it. */
export interface Session {
  readonly key: ApiKey
  readonly id: string
  /** Whether the answer should bring a new cookie, so that the session goes on. */
  readonly isDue: boolean
  /** Unless it is used again. Epoch milliseconds. */
  readonly endsAt: number
}

/**
 * Nothing is stored of a session: its cookie names its key and when it was last used, under a seal. The seal covers the
 * whole hash of the key, of which the database knows only the beginning: to forge one takes the database and the config.
 */
export function createSessions({ secret, apiKeys, localKey, clock }: SessionsDeps) {
  /** Sessions of the local socket belong to this process, and end with it. */
  const ownSecret = randomBytes(32)
  /** Until when each id would have lasted. */
  const signedOut = new Map<string, number>()

  function sealOf(key: ApiKey, id: string, at: number): Buffer {
    const isLocal = key.sha256 === ''
    const text = JSON.stringify(['console session', key.sha256, id, at])
    return createHmac('sha256', isLocal ? ownSecret : secret)
      .update(text)
      .digest()
  }

  return {
    /** The cookie of a session that begins, or goes on. @param id of the one that goes on */
    cookieFor(key: ApiKey, id = randomBytes(12).toString('base64url')): string {
      const at = clock()
      return [nameOf(key), id, at.toString(36), sealOf(key, id, at).toString('base64url')].join('.')
    },
    /** Null if there is no such session, or no longer. */
    find(cookie: string): Session | null {
      const [name = '', id = '', time = '', seal = '', ...more] = cookie.split('.')
      const at = Number.parseInt(time, 36)
      const age = clock() - at
      if (more.length > 0 || !(age < IDLE_MS && age > -CLOCKS_APART_MS) || signedOut.has(id)) return null
      const key = name === 'local' ? localKey : apiKeys().find((one) => nameOf(one) === name)
      if (key === undefined || (key.expiresAt !== null && key.expiresAt <= clock())) return null
      const sent = Buffer.from(seal, 'base64url')
      const right = sealOf(key, id, at)
      if (sent.length !== right.length || !timingSafeEqual(sent, right)) return null
      return { key, id, isDue: age > RENEWED_AFTER_MS, endsAt: at + IDLE_MS }
    },
    /** Its cookie counts no more, wherever a copy of it is. */
    end({ id }: Session): void {
      const now = clock()
      for (const [other, until] of signedOut) {
        if (until > now && signedOut.size < MAX_SIGNED_OUT) break
        signedOut.delete(other)
      }
      signedOut.set(id, now + IDLE_MS + CLOCKS_APART_MS)
    },
  }
}

export type Links = ReturnType<typeof createLinks>

/** Links that sign in with the key that asked for them: each once, and within a minute. */
export function createLinks(clock: () => number) {
  const links = new Map<string, { readonly key: ApiKey; readonly expiresAt: number }>()
  return {
    create(key: ApiKey) {
      for (const [token, { expiresAt }] of links) {
        if (expiresAt > clock() && links.size < MAX_LINKS) break
        links.delete(token)
      }
      const token = randomBytes(32).toString('base64url')
      const expiresAt = clock() + LINK_MS
      links.set(token, { key, expiresAt })
      return { token, expiresAt }
    },
    /** Null if there is no such link, or no longer. Of two requests with one token, the first gets the key. */
    take(token: string): ApiKey | null {
      const link = links.get(token)
      links.delete(token)
      return link !== undefined && link.expiresAt > clock() ? link.key : null
    },
  }
}
