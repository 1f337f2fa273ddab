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
