import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LimitVerdict } from './discord-limits.js'
import { type DiscordAnswer, type DiscordRequest, type DiscordRouteName, routeOf } from './discord-routes.js'

const PREFIX = '/api/v10'

/** One call as the platform saw it. Instants are epoch milliseconds. */
export interface DiscordCall {
  readonly at: number
  readonly method: string
  /** Below the version. */
  readonly path: string
  readonly query: string
  readonly route: DiscordRouteName | null
  readonly reason: string | null
  /** Null: it was given no answer, or none yet. */
  status: number | null
  /** It came before a `retry_after` had passed. */
  isEarly: boolean
  /** It counts towards the 10,000 in ten minutes after which an address is blocked. */
  isInvalid: boolean
}

/** A call outside the version that is spoken here finds no route. */
export function callOf(req: IncomingMessage): DiscordCall {
  const { pathname, search } = new URL(req.url ?? '/', 'http://localhost')
  const method = req.method ?? 'GET'
  const isKnown = pathname.startsWith(PREFIX)
  const path = isKnown ? decodeURIComponent(pathname.slice(PREFIX.length)) : pathname
  const reason = req.headersDistinct['x-audit-log-reason']?.[0]
  return {
    at: Date.now(),
    method,
    path,
    query: search,
    route: routeOf({ method, path })?.name ?? null,
    reason: reason === undefined ? null : decodeURIComponent(reason),
    status: null,
    isEarly: false,
    isInvalid: false,
  }
}

export function requestOf({ method, path, query, reason }: DiscordCall): DiscordRequest {
  return { method, path, query: new URLSearchParams(query), reason }
}

export function send(
  res: ServerResponse,
  call: DiscordCall,
  { status, body }: DiscordAnswer,
  headers: Readonly<Record<string, string>> = {},
): void {
  call.status = status
  call.isInvalid = status === 401 || status === 403
  if (body === undefined) {
    res.writeHead(status, headers).end()
  } else {
    res.writeHead(status, { ...headers, 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
}

export function sendLimited(
  res: ServerResponse,
  call: DiscordCall,
  { scope, headers }: LimitVerdict,
  waitMs: number,
): void {
  call.status = 429
  // A limit that others use up too is not held against the bot.
  call.isInvalid = scope !== 'shared'
  if (scope === 'network') {
    res.writeHead(429, { 'content-type': 'text/html' }).end('<h1>Error 1015</h1>')
    return
  }
  const seconds = waitMs / 1_000
  res.writeHead(429, {
    ...(scope === 'global' ? { 'x-ratelimit-global': 'true' } : headers),
    'content-type': 'application/json',
    'x-ratelimit-scope': scope,
    // In whole seconds, as HTTP has it.
    'retry-after': String(Math.ceil(seconds)),
  })
  const body = {
    message: 'You are being rate limited.',
    retry_after: seconds,
    global: scope === 'global',
  }
  res.end(JSON.stringify(body))
}
