import { createHash } from 'node:crypto'
import { ask, type RunningDaemon, runDaemon } from './running-daemon.js'
import { wireEvent } from './wire-events.js'

export const KEY = 'lk_events_key'

export function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** A daemon with a key that may see what is stored. */
export function runEventsDaemon(): Promise<RunningDaemon> {
  const rights = { scopes: ['events', 'write', 'read'], environments: ['live', 'sandbox'] }
  return runDaemon({
    config: { api: { keys: [{ name: 'events', hash: `sha256:${sha256(KEY)}`, ...rights }] } },
  })
}

/** Asks with that key. */
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
