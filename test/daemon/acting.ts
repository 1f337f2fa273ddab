import { createHash } from 'node:crypto'
import { type DaemonOptions, type RunningDaemon, runDaemon } from './running-daemon.js'

const WRITE_KEY = 'lk_write_key'
const READ_KEY = 'lk_read_key'

const keyOf = (name: string, key: string, scopes: readonly string[]) => ({
  name,
  hash: `sha256:${createHash('sha256').update(key).digest('hex')}`,
  scopes,
  environments: ['live'],
})

/** Keys of live: `support` may read and write, `app` may only read. */
export const ACTING_KEYS = {
  api: { keys: [keyOf('support', WRITE_KEY, ['read', 'write']), keyOf('app', READ_KEY, ['read'])] },
}

export function runActingDaemon(options: DaemonOptions = {}): Promise<RunningDaemon> {
  return runDaemon({ ...options, config: { ...ACTING_KEYS, ...options.config } })
}

export interface ActOptions {
  readonly key?: string
  readonly headers?: Record<string, string>
}

/** An answer to an act, or a problem. */
export interface AnsweredJson {
  readonly eventId?: string
  readonly entitlements?: readonly Readonly<Record<string, unknown>>[]
  readonly code?: string
  readonly errors?: readonly { readonly path: string }[]
}

export interface Answered {
  readonly status: number
  readonly json: AnsweredJson
}

/** `act(daemon, 'POST', '/customers/cus_1/grants', {…})`, with the key of `support`. */
export async function act(
  daemon: RunningDaemon,
  method: string,
  path: string,
  body?: unknown,
  { key = WRITE_KEY, headers = {} }: ActOptions = {},
): Promise<Answered> {
  const response = await fetch(`${daemon.url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { status: response.status, json: (await response.json()) as AnsweredJson }
}

/** What the API says of one product. */
export async function entitlement(daemon: RunningDaemon, customerId: string, productId: string, query = '') {
  return (await act(daemon, 'GET', `/entitlements/${customerId}/${productId}${query}`)).json
}
