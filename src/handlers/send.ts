import { hash } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { isLatchkeyError } from '../errors.js'
import { isInTinyPieces, NO_ROOM } from './body.js'
import { problemOf } from './problem.js'
import { factsOf } from './server.js'

/** How long a refused body is read and dropped, so that the sender receives the answer. */
const LINGER_MS = 2_000
/** Limits the tiny chunks read for that: they cost more than the answer is worth. */
const LINGER_PIECES = 64

const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends a whole JSON answer. */
export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: OutgoingHttpHeaders = {},
): void {
  send(res, status, { 'Content-Type': JSON_TYPE, ...headers }, JSON.stringify(body))
}

/**
 * Sends a whole answer; nothing if the caller is gone. If the request body was not read to its end, closes the
 * connection after the answer.
 */
export function send(
  res: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  content: string | Buffer,
): void {
  if (res.destroyed) return
  const unread = hasUnreadBody(res.req)
  if (unread) res.setHeader('Connection', 'close')
  const length = Buffer.byteLength(content)
  const facts = factsOf(res.req)
  facts.bytes = length
  res.writeHead(status, {
    ...headers,
    'Content-Length': length,
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': facts.id,
  })
  if (!unread) {
    res.end(content)
    return
  }
  // HEAD would send nothing before the end.
  res.flushHeaders()
  res.write(content)
  endAfterBody(res)
}

function hasUnreadBody(req: IncomingMessage): boolean {
  if (req.complete) return false
  const { 'content-length': length, 'transfer-encoding': transferEncoding } = req.headers
  return transferEncoding !== undefined || (length !== undefined && length !== '0')
}

/**
 * Closing a connection while bytes still arrive resets it, and the reset may overtake the answer. So the rest is read
 * and dropped first, within limits.
 */
function endAfterBody(res: ServerResponse): void {
  const end = () => {
    clearTimeout(timer)
    res.end()
  }
  const timer = setTimeout(end, LINGER_MS)
  let pieces = 0
  let bytes = 0
  const drop = (piece: Buffer) => {
    pieces += 1
    bytes += piece.length
    if (!isInTinyPieces(pieces, bytes, LINGER_PIECES)) return
    res.req.off('data', drop)
    end()
    res.req.socket.destroySoon()
  }
  res.req.on('data', drop).once('end', end).once('close', end).resume()
}

/** Sends an answer that callers may cache and revalidate: 304 if it still holds. */
export function sendTagged(
  res: ServerResponse,
  tag: string,
  content: string | Buffer,
  type = JSON_TYPE,
): void {
  // What came under a session of the console is kept nowhere.
  const headers = { ETag: tag, 'Cache-Control': res.getHeader('Cache-Control') ?? 'private, no-cache' }
  if (isHeld(res.req.headers['if-none-match'], tag)) {
    res.writeHead(304, { ...headers, 'X-Request-Id': factsOf(res.req).id }).end()
  } else send(res, 200, { 'Content-Type': type, ...headers }, content)
}

/** The ETag of this state. */
export function tagOf(state: string): string {
  return `"${hash('sha256', state, 'base64url')}"`
}

/** A proxy that compresses marks the tag as weak (`W/`), which does not matter here. */
function isHeld(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const held = ifNoneMatch.split(',').map((candidate) => candidate.trim().replace(/^W\//, ''))
  return held.includes(tag) || held.includes('*')
}

/** Answers a failed request with problem+json. Details that the caller may not see are logged. */
export function answerFailure(res: ServerResponse, error: unknown, log: Logger): void {
  const { id: requestId, route } = factsOf(res.req)
  const { status, headers, body, expected } = problemOf(error, requestId)
  const request = { requestId, method: res.req.method, route, ...loggedOf(error) }
  if (!expected) log.error(request, 'a request failed because of a bug')
  else if (status >= 500 && error !== NO_ROOM && !isLatchkeyError(error, 'too_many_streams'))
    log.warn(request, 'could not serve a request')

  if (res.headersSent) res.destroy()
  else send(res, status, headers, body)
}

/** An expected failure without a cause needs no stack: its code and message say all. */
function loggedOf(error: unknown): Readonly<Record<string, unknown>> {
  if (!isLatchkeyError(error) || error.cause !== undefined) return { err: error }
  return { code: error.code, reason: error.message }
}
