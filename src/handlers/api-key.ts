import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import type { Environment } from '../provider/event.js'

export const API_SCOPES = ['read', 'write', 'events', 'metrics', 'admin'] as const
export type ApiScope = (typeof API_SCOPES)[number]

/** A caller of the API. Only the hash of the key is known here. */
export interface ApiKey {
  readonly name: string
  /** Lower-case hex SHA-256 of the key's text. */
  readonly sha256: string
  readonly scopes: readonly ApiScope[]
  readonly environments: readonly Environment[]
}

/** The least that any supported system takes for the path of a socket, less its final NUL. */
export const MAX_SOCKET_PATH_BYTES = 103

/** The local socket is beside the database, so that a command finds it by the config alone. */
export function socketFileOf(databaseFile: string): string {
  return join(dirname(databaseFile), 'latchkey.sock')
}

/** The key of the local socket: its callers are this process's own user, or root, who could write the database themselves. */
export function localKey(): ApiKey {
  return { name: systemUser(), sha256: '', scopes: API_SCOPES, environments: ['live', 'sandbox'] }
}

/** The user that this process runs as, by name; by number where the system has no name for it, as in many containers. */
function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
