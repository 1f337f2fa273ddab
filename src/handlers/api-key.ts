import { userInfo } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Environment } from '../provider/event.js'

export const API_SCOPES = ['read', 'write', 'events', 'metrics', 'admin'] as const
export type ApiScope = (typeof API_SCOPES)[number]

/** A caller of the API. Holds the hash of the key, never the key. */
export interface ApiKey {
  readonly name: string
  /** Lower-case hex SHA-256 of the key's text. */
  readonly sha256: string
  readonly scopes: readonly ApiScope[]
  readonly environments: readonly Environment[]
  /** Epoch milliseconds, like the next; null: unknown. */
  readonly createdAt: number | null
  /** It is refused from then on; null: never. */
  readonly expiresAt: number | null
  /** Requests a second on average, and at once; null: as many as it likes. */
  readonly rateLimit: { readonly perSecond: number; readonly burst: number } | null
  /** There is a newer key of the same name. */
  readonly isReplaced: boolean
}

/** For a key that is not one of the config. */
export const UNLIMITED = { createdAt: null, expiresAt: null, rateLimit: null, isReplaced: false } as const

/** The shortest path limit for a socket on any supported system, less the final NUL. */
export const MAX_SOCKET_PATH_BYTES = 103

/** The local socket is next to the database and named after it, so that commands find it from the config alone. */
export function socketFileOf(databaseFile: string): string {
  return join(dirname(databaseFile), `${basename(databaseFile, '.db')}.sock`)
}

/** The key of the local socket. Its callers are the daemon's user or root, who could edit the database file anyway. */
export function localKey(): ApiKey {
  const rights = { scopes: API_SCOPES, environments: ['live', 'sandbox'] } as const
  return { name: systemUser(), sha256: '', ...rights, ...UNLIMITED }
}

/** The name of the user that this process runs as, or its number: many containers have no name for it. */
function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
