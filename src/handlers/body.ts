import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { type Issue, LatchkeyError } from '../errors.js'
import { isUsableId } from '../provider/ids.js'
import { describeIssue, problemsIn } from './problem.js'
import { isProved, MAX_CONNECTIONS } from './server.js'

/** Far larger than any known event, and small enough that many senders at once can't fill the memory. */
export const MAX_BODY_BYTES = 1024 * 1024

/** Each chunk costs time: thousands of a few bytes each would block all other requests for seconds. */
const MAX_TINY_PIECES = 2_048
const TINY_BYTES = 64

const TINY_PIECES = new LatchkeyError(
  'body_too_large',
  `The body arrived in over ${MAX_TINY_PIECES} tiny pieces: send larger ones.`,
)

/** Whether a body arrives in far more chunks than its size needs. */
export function isInTinyPieces(pieces: number, bytes: number, most = MAX_TINY_PIECES): boolean {
  return pieces > most && bytes < pieces * TINY_BYTES
}

/** All bodies being read may hold this much together, over all listeners. */
const MAX_HELD_BYTES = 64 * 1024 * 1024

/** Events have 1 to 2 kB. */
const SMALL_BODY_BYTES = 8 * 1024

/**
 * Larger bodies from unproved senders leave this much free: room for a small body on every connection, so that they
 * block neither events nor callers with a key.
 */
const KEPT_FOR_SMALL_BYTES = MAX_CONNECTIONS * SMALL_BODY_BYTES

/** Global, because memory is: every body adds the bytes it holds, and subtracts them at the end. */
let heldBytes = 0

/** Bytes held now by the bodies being read. */
export function bytesBeingRead(): number {
  return heldBytes
}

/** Refuses a body when there is no memory for it. Anybody can cause this, so it must be logged with a limit. */
export const NO_ROOM = new LatchkeyError('not_stored', 'Too many bodies are being received. Send it again.')

/**
 * Refuses a body by its headers, before any of it is read.
 *
 * @throws LatchkeyError `encoding_not_supported` if the body is compressed: the signature covers the bytes sent, and
 * nothing here decompresses; `body_too_large`, by `Content-Length`
 */
export function requireReadable(req: IncomingMessage, maxBytes: number): void {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (encoding !== '' && encoding !== 'identity') {
    throw new LatchkeyError('encoding_not_supported', 'Send the body as it was signed, uncompressed.')
  }
  if (announcedBytes(req) > maxBytes) throw tooLarge(maxBytes)
}

/**
 * Collects the exact bytes of a body.
 *
 * @throws LatchkeyError as `requireReadable`; `body_too_large` while reading; `body_incomplete` if the sender
 * disconnects; `NO_ROOM` while other bodies hold all the memory allowed for them
 */
export async function readBody(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  requireReadable(req, maxBytes)
  return collect(req, maxBytes, isProved(req) ? MAX_HELD_BYTES : MAX_HELD_BYTES - KEPT_FOR_SMALL_BYTES)
}

/** Copies each chunk into one growing buffer, so that a body costs its size however it is chunked. */
function collect(req: IncomingMessage, maxBytes: number, roomForLarge: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const mostBytes = announcedBytes(req) || maxBytes
    let buffer = Buffer.alloc(0)
    let size = 0
    let pieces = 0

    const onData = (chunk: Buffer) => {
      pieces += 1
      const needed = size + chunk.length
      if (needed > maxBytes) return settle(() => reject(tooLarge(maxBytes)))
      if (isInTinyPieces(pieces, needed)) return settle(() => reject(TINY_PIECES))
      if (needed > buffer.length && !grow(Math.max(needed, Math.min(2 * buffer.length, mostBytes)))) {
        return settle(() => reject(NO_ROOM))
      }
      chunk.copy(buffer, size)
      size = needed
    }
    const onEnd = () =>
      settle(() => resolve(size < buffer.length ? Buffer.from(buffer.subarray(0, size)) : buffer))
    const onClose = () => settle(() => reject(new LatchkeyError('body_incomplete', 'The body ended early.')))

    function grow(bytes: number): boolean {
      const room = bytes > SMALL_BODY_BYTES ? roomForLarge : MAX_HELD_BYTES
      if (heldBytes - buffer.length + bytes > room) return false
      heldBytes += bytes - buffer.length
      const grown = Buffer.allocUnsafe(bytes)
      buffer.copy(grown, 0, 0, size)
      buffer = grown
      return true
    }

    function settle(outcome: () => void) {
      req.off('data', onData).off('end', onEnd).off('close', onClose)
      heldBytes -= buffer.length
      outcome()
    }
    // What embeds the daemon may have paused it, and a pause outlasts a new listener.
    req.on('data', onData).on('end', onEnd).on('close', onClose).resume()
  })
}

function announcedBytes(req: IncomingMessage): number {
  return Number(req.headers['content-length'] ?? 0)
}

function tooLarge(maxBytes: number): LatchkeyError {
  return new LatchkeyError('body_too_large', `The body is over ${maxBytes} bytes.`)
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/i
export const LINES_TYPE = 'application/x-ndjson'
/** Checking this many lines takes some ten milliseconds, which block all other requests. */
export const MAX_LINES_BYTES = 2 * 1024 * 1024
/** Fewer than one transaction takes. */
export const MAX_IMPORT_LINES = 200

/**
 * Reads the body of a request by its schema: JSON, where an empty body is an empty object, or lines of text.
 * @param type the required `Content-Type`, so that no web page can make a browser send the request
 * @throws LatchkeyError `invalid_request` with everything that is wrong; `media_type_not_supported`; and as `readBody`
 */
export async function readParsed(
  req: IncomingMessage,
  schema: z.ZodType,
  type: 'json' | 'lines' | undefined,
): Promise<unknown> {
  const mediaType = (req.headers['content-type'] ?? '').replace(/;.*/s, '').trim()
  if (type === 'json' && !JSON_TYPE.test(mediaType)) throw mustBe('JSON, sent as application/json')
  if (type === 'lines' && mediaType.toLowerCase() !== LINES_TYPE) throw mustBe(`lines, sent as ${LINES_TYPE}`)
  const body = await readBody(req, type === 'lines' ? MAX_LINES_BYTES : MAX_BODY_BYTES)
  const text = body.toString('utf8')
  const lines = type === 'lines' ? text.split('\n').filter((line) => line !== '') : null
  const given = lines ?? (text === '' ? {} : parseJson(text))
  const parsed = schema.safeParse(given, { error: describeIssue })
  if (parsed.success) return parsed.data
  throw invalidBody(issuesOf(parsed.error))
}

function mustBe(what: string): LatchkeyError {
  return new LatchkeyError('media_type_not_supported', `The body must be ${what}.`)
}

/** @throws LatchkeyError `invalid_request` */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalidBody([{ path: '', message: 'is not JSON' }])
  }
}

/** The path of a problem, such as `checks.1.productId`. */
export function issuesOf(error: z.ZodError): readonly Issue[] {
  return problemsIn(error).map(({ path, message }) => ({ path: path.map(String).join('.'), message }))
}

/** The error for an unusable body. */
export function invalidBody(issues: readonly Issue[]): LatchkeyError {
  return new LatchkeyError('invalid_request', 'The body is not valid.', { issues })
}

export const ID_BOUNDS = { minLength: 1, maxLength: 255 }
export const NO_ID = 'is not an id: 1 to 255 characters, none a control character'

/** An id in a body. */
export const idText = z.string().refine(isUsableId, NO_ID).meta(ID_BOUNDS)

/** The error for a well-formed field of a body that names nothing. @param value how a sentence begins about it */
export function invalidField(path: string, value: string, message: string): LatchkeyError {
  return new LatchkeyError('invalid_request', `${value} ${message}.`, { issues: [{ path, message }] })
}
