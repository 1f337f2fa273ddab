import { createHash } from 'node:crypto'
import { ask, type RunningDaemon, runDaemon } from './running-daemon.js'
import { wireEvent } from './wire-events.js'

export const KEY = 'lk_events_key'
export const LIVE_KEY = 'lk_live_events_key'
export const READ_KEY = 'lk_read_only_key'

const KEYS = [
  keyOf('events', KEY, ['events', 'write', 'read'], ['live', 'sandbox']),
  keyOf('live-events', LIVE_KEY, ['events'], ['live']),
  keyOf('app', READ_KEY, ['read', 'write', 'metrics', 'admin'], ['live', 'sandbox']),
]

function keyOf(name: string, key: string, scopes: readonly string[], environments: readonly string[]) {
  return { name, hash: `sha256:${sha256(key)}`, scopes, environments }
}

export function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** A daemon with keys that may see what is stored, and one that may not. */
export function runEventsDaemon(): Promise<RunningDaemon> {
  return runDaemon({ config: { api: { keys: KEYS } } })
}

/** Asks with a key that may see everything. */
export function get(
  daemon: RunningDaemon,
  path: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return ask(daemon, path, { Authorization: `Bearer ${KEY}`, ...headers })
}

export const GRANT = wireEvent('payment.authorized', { id: 'evt_1' })
export const HELD = wireEvent('CHECKOUT_SUCCESS', { id: 'evt_2', customer: null, payment: 'pay_2' })
/** Not even text. */
export const BROKEN = Buffer.from([0x7b, 0xff, 0x00, 0x0a])
export const BROKEN_ID = `sha256:${sha256(BROKEN)}`
