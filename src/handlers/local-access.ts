import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { API_SCOPES, type ApiKey } from './api-key.js'
import type { Authenticate } from './authenticate.js'

/** The socket stands beside the database, so that a command finds it by the config alone. */
export function socketFileOf(databaseFile: string): string {
  return join(dirname(databaseFile), 'latchkey.sock')
}

/** Whoever opens the socket is this process's own user, or root: they could as well write the database itself. */
export function createLocalAuthenticate(): Authenticate {
  const key: ApiKey = {
    name: systemUser(),
    sha256: '',
    scopes: API_SCOPES,
    environments: ['live', 'sandbox'],
  }
  return () => key
}

/** The user that this process runs as, by name; by number where the system has no name for it, as in many containers. */
export function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
