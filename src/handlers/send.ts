import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { isInTinyPieces } from './read-body.js'

/** How long an unwanted body is read and thrown away, so that its sender gets to see the answer. */
const LINGER_MS = 2_000
/** But of tiny pieces, which cost more than that their sender sees the answer is worth, only so many. */
const LINGER_PIECES = 64

type Headers = Readonly<Record<string, string>>

export const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' }

/** Sends a whole JSON answer. */
export function sendJson(res: ServerResponse, status: number, body: unknown, headers: Headers = {}): void {
  send(res, status, { ...JSON_TYPE, ...headers }, JSON.stringify(body))
}

/**
 * Sends a whole answer; nothing if the caller is gone. Where the request's body was not read to its end,
 * the connection closes after the answer.
 */
export function send(res: ServerResponse, status: number, headers: Headers, content: string | Buffer): void {
  sendWhole(
    res,
    status,
    { ...headers, 'Content-Length': Buffer.byteLength(content), 'X-Content-Type-Options': 'nosniff' },
    content,
  )
}

/** The same with all headers. */
export function sendWhole(
  res: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  content: string | Buffer,
): void {
  if (res.destroyed) return
  const unread = hasUnreadBody(res.req)
  if (unread) res.setHeader('Connection', 'close')
  res.writeHead(status, headers)
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
