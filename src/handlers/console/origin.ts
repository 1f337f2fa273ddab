/* Which requests come from the console's own page, as the browser says it. */

import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { LatchkeyError } from '../../errors.js'

/** How the console is reached: by a proxy in front, what that proxy says counts. */
export function createOrigin(trustProxy: number) {
  const forwarded = (req: IncomingMessage, name: string): string | undefined =>
    trustProxy === 0 ? undefined : req.headers[name]?.toString().split(',')[0]?.trim()
  const hostOf = (req: IncomingMessage): string =>
    (forwarded(req, 'x-forwarded-host') ?? req.headers.host ?? '').toLowerCase()

  /** Whether the browser speaks TLS, which only a proxy can know. */
  const isSecure = (req: IncomingMessage): boolean =>
    forwarded(req, 'x-forwarded-proto')?.toLowerCase() === 'https'

  function isOrigin(named: string, req: IncomingMessage): boolean {
    const origin = urlOf(named)
    if (origin === null || (isSecure(req) && origin.protocol !== 'https:')) return false
    return origin.host === urlOf(`${origin.protocol}//${hostOf(req)}`)?.host
  }

  return {
    isSecure,

    /**
     * A page elsewhere can have its own name lead to this machine. Then this daemon is asked by that name, on an address
     * that only this machine can reach.
     * @throws LatchkeyError `origin_refused`
     */
    assertNamed(req: IncomingMessage): void {
      if (trustProxy > 0 || !isLoopback(req.socket.localAddress ?? '')) return
      const { hostname } = urlOf(`http://${hostOf(req)}`) ?? { hostname: '' }
      if (isLoopback(hostname) || hostname === 'localhost' || hostname.endsWith('.localhost')) return
      throw new LatchkeyError(
        'origin_refused',
        'The console is asked for by a name that is not of this machine: open it at http://127.0.0.1 and its port, or set server.trustProxy if a proxy is in front.',
      )
    },

    /**
     * For a request that changes something: it must come from the console's own page. Chromium names no origin in a
     * DELETE to the same one, but every browser of the last years says there whether it is the same. No page can set
     * either header.
     * @throws LatchkeyError `origin_refused`
     */
    assertOwn(req: IncomingMessage): void {
      const { origin: named, 'sec-fetch-site': site } = req.headers
      const isOwn = named === undefined ? site === 'same-origin' : isOrigin(named, req)
      if (isOwn && (site === undefined || site === 'same-origin')) return
      throw new LatchkeyError(
        'origin_refused',
        'This request does not come from the console: use its own page. Behind a proxy, have it pass the Host header on.',
      )
    },
  }
}

function urlOf(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}

/** Of an address, or of the name in a URL, where an IPv6 address has brackets. */
function isLoopback(address: string): boolean {
  const plain = address.replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:/i, '')
  return plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'))
}
