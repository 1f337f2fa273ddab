import { hash } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { isLatchkeyError } from '../errors.js'
import { isInTinyPieces, NO_ROOM } from './body.js'
import { problemOf } from './problem.js'

/** How long an unwanted body is read and thrown away, so that its sender gets to see the answer. */
const LINGER_MS = 2_000
/** But of tiny pieces, which cost more than that their sender sees the answer is worth, only so many. */
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
 * Sends a whole answer; nothing if the caller is gone. Where the request's body was not read to its end,
 * the connection closes after the answer.
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
  res.writeHead(status, { ...headers, 'Content-Length': length, 'X-Content-Type-Options': 'nosniff' })
  if (!unread) {
    res.end(content)
    return
  }
  // To HEAD nothing else would be sent before the end.
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
 * Closing a connection on which bytes are still coming in resets it, and a reset may overtake the
 * answer. So the rest is read and dropped first, for as long as that is reasonable.
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

/** Sends an answer that a caller may keep, if it asks each time whether it still holds: 304 when it does. */
export function sendTagged(
  res: ServerResponse,
  tag: string,
  content: string | Buffer,
  type = JSON_TYPE,
): void {
  const headers = { ETag: tag, 'Cache-Control': 'private, no-cache' }
  if (isHeld(res.req.headers['if-none-match'], tag)) res.writeHead(304, headers).end()
  else send(res, 200, { 'Content-Type': type, ...headers }, content)
}

/** The ETag of an answer whose state this is. */
export function tagOf(state: string): string {
  return `"${hash('sha256', state, 'base64url')}"`
}

/** A proxy that compresses marks a tag as weak (`W/`); for this question the two are the same. */
function isHeld(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const held = ifNoneMatch.split(',').map((candidate) => candidate.trim().replace(/^W\//, ''))
  return held.includes(tag) || held.includes('*')
}

/** Answers a failed request as problem+json. What is not shown to the caller is logged. */
export function answerFailure(res: ServerResponse, error: unknown, log: Logger): void {
  const { status, headers, body, expected } = problemOf(error)
  const request = { method: res.req.method, url: res.req.url, ...loggedOf(error) }
  if (!expected) log.error(request, 'a request failed because of a bug')
  else if (status >= 500 && error !== NO_ROOM) log.warn(request, 'a request could not be served')

  if (res.headersSent) res.destroy()
  else send(res, status, headers, body)
}

/** Of an expected failure that has no cause the code and the message say all, and a stack nothing. */
function loggedOf(error: unknown): Readonly<Record<string, unknown>> {
  if (!isLatchkeyError(error) || error.cause !== undefined) return { err: error }
  return { code: error.code, reason: error.message }
}
