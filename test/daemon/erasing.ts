import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { type DaemonOptions, type RunningDaemon, runDaemon } from './running-daemon.js'

const ADMIN_KEY = 'lk_admin_key'
const SUPPORT_KEY = 'lk_support_key'

const keyOf = (name: string, key: string, scopes: readonly string[]) => ({
  name,
  hash: `sha256:${createHash('sha256').update(key).digest('hex')}`,
  scopes,
  environments: ['live'],
})

/** Keys of live: `privacy` may do everything, `support` may not erase. */
const ERASING_KEYS = {
  api: {
    keys: [
      keyOf('privacy', ADMIN_KEY, ['read', 'write', 'events', 'admin', 'metrics']),
      keyOf('support', SUPPORT_KEY, ['read', 'write', 'events']),
    ],
  },
}

export function runErasingDaemon(options: DaemonOptions = {}): Promise<RunningDaemon> {
  return runDaemon({ ...options, config: { ...ERASING_KEYS, ...options.config } })
}

export interface Answered {
  readonly status: number
  // Whatever the API says: each test knows what it asked for.
  readonly json: Readonly<Record<string, unknown>>
}

/** Asks the API, as `privacy` unless another key is told. */
export async function call(
  daemon: RunningDaemon,
  method: string,
  path: string,
  body?: unknown,
  key = ADMIN_KEY,
): Promise<Answered> {
  const response = await fetch(`${daemon.url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, json: (await response.json()) as Answered['json'] }
}

export function erase(daemon: RunningDaemon, customerId: string, body?: unknown): Promise<Answered> {
  return call(daemon, 'DELETE', `/customers/${customerId}`, body)
}

export function eraseAsSupport(daemon: RunningDaemon, customerId: string): Promise<Answered> {
  return call(daemon, 'DELETE', `/customers/${customerId}`, undefined, SUPPORT_KEY)
}

/** Which of these words any byte of the database or its log holds. */
export function foundIn(databaseFile: string, words: readonly string[]): readonly string[] {
  const files = [databaseFile, `${databaseFile}-wal`].filter((file) => existsSync(file))
  const bytes = files.map((file) => readFileSync(file))
  return words.filter((word) => bytes.some((one) => one.includes(word)))
}
