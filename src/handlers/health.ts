import { LatchkeyError } from '../errors.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'

/** GET /healthz: whether the process and its writer live. Needs no key, and tells nothing else. */
export function healthz({ isWriterAlive }: { isWriterAlive: () => boolean }): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    if (!isWriterAlive()) throw new LatchkeyError('store_unavailable', 'The writer has stopped.')
    sendJson(res, 200, { status: 'ok' }, { 'Cache-Control': 'no-store' })
  }
}

/** Whether deliveries can be stored, and what an operator should know. Notes hold no data. */
export interface Readiness {
  readonly ready: boolean
  readonly notes: readonly string[]
}

/** GET /readyz: whether the store is migrated and takes deliveries. Needs no key. */
export function readyz({ readiness }: { readiness: () => Promise<Readiness> }): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { ready, notes } = await readiness()
    if (!ready) throw new LatchkeyError('store_unavailable', notes.join('; ') || 'Not ready to store.')
    sendJson(res, 200, { status: 'ready', notes }, { 'Cache-Control': 'no-store' })
  }
}
