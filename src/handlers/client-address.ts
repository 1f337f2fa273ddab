import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import proxyAddr from 'proxy-addr'

/**
 * Tells who sent a request. Only the last `trustProxy` hops are believed about whom they forward for:
 * with 0, `X-Forwarded-For` counts for nothing, so that nobody can choose an address.
 */
export function createClientAddress(trustProxy: number): (req: IncomingMessage) => string {
  return (req) => {
    const own = req.socket.remoteAddress ?? 'unknown'
    if (trustProxy === 0) return own
    const forwarded = proxyAddr(req, (_address, hop) => hop < trustProxy)
    return isIP(forwarded) === 0 ? own : forwarded
  }
}
