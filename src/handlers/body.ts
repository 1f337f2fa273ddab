import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { type Issue, LatchkeyError } from '../errors.js'
import { isUsableId } from '../provider/ids.js'
import { isProved, MAX_CONNECTIONS } from './server.js'

/** Far above any event seen, far below what many senders at once could fill the memory with. */
export const MAX_BODY_BYTES = 1024 * 1024

/** Each piece costs time of its own: so many of a few bytes each would keep everybody else waiting for seconds. */
const MAX_TINY_PIECES = 2_048
const TINY_BYTES = 64

/** Whether a body comes in far too many pieces, for what it is. */
export function isInTinyPieces(pieces: number, bytes: number, most = MAX_TINY_PIECES): boolean {
  return pieces > most && bytes < pieces * TINY_BYTES
}

/** All bodies that are being read may hold this much together, whatever listener they come by. */
const MAX_HELD_BYTES = 64 * 1024 * 1024

/** Events have some 1 to 2 kB. */
const SMALL_BODY_BYTES = 8 * 1024

/**
 * Larger bodies of senders who have proved nothing yet leave this much free: enough for a small one on every connection,
 * so that they keep out neither events nor whoever has a key.
 */
const KEPT_FOR_SMALL_BYTES = MAX_CONNECTIONS * SMALL_BODY_BYTES

/** Of the process, as its memory is: every body adds what it holds, and takes it off at its end. */
let heldBytes = 0

/** What the bodies that are being read hold now. */
export function bytesBeingRead(): number {
  return heldBytes
}

/** The refusal of a body for which there is no room. Anybody can cause it, so it must not be logged without a limit. */
export const NO_ROOM = new LatchkeyError('not_stored', 'Too many bodies are being received. Send it again.')

/**
 * Refuses a body by its headers, before any of it is read.
 *
 * @throws LatchkeyError `encoding_not_supported` if the body is compressed: the signature covers what
 * was sent, and nothing here unpacks; `body_too_large`, by the announced length
 */
export function requireReadable(req: IncomingMessage, maxBytes: number): void {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (encoding !== '' && encoding !== 'identity') {
    throw new LatchkeyError('encoding_not_supported', 'The body must be sent as it was signed, uncompressed.')
  }
  if (announcedBytes(req) > maxBytes) throw tooLarge(maxBytes)
}

/**
 * Collects the exact bytes of a body.
 *
 * @throws LatchkeyError as `requireReadable`; `body_too_large` while reading; `body_incomplete` if the sender went
 * away; `NO_ROOM` while other bodies hold all the memory that there is for them
 */
export async function readBody(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  requireReadable(req, maxBytes)
  return collect(req, maxBytes, isProved(req) ? MAX_HELD_BYTES : MAX_HELD_BYTES - KEPT_FOR_SMALL_BYTES)
}

/** Copies each chunk into one buffer that grows, so that a body costs its size, however it is cut. */
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
      if (isInTinyPieces(pieces, needed)) return settle(() => reject(tooManyPieces()))
      if (needed > buffer.length && !grow(Math.max(needed, Math.min(2 * buffer.length, mostBytes)))) {
        return settle(() => reject(NO_ROOM))
      }
      chunk.copy(buffer, size)
      size = needed
    }
    const onEnd = () =>
      settle(() => resolve(size < buffer.length ? Buffer.from(buffer.subarray(0, size)) : buffer))
    const onClose = () =>
      settle(() => reject(new LatchkeyError('body_incomplete', 'The body ended before its time.')))

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
    req.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}

function announcedBytes(req: IncomingMessage): number {
  return Number(req.headers['content-length'] ?? 0)
}

function tooLarge(maxBytes: number): LatchkeyError {
  return new LatchkeyError('body_too_large', `The body is over ${maxBytes} bytes.`)
}

function tooManyPieces(): LatchkeyError {
  return new LatchkeyError(
    'body_too_large',
    `The body comes in over ${MAX_TINY_PIECES} tiny pieces: send larger ones.`,
  )
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/i
export const LINES_TYPE = 'application/x-ndjson'
/** So many lines are checked in some ten milliseconds, for which nobody else is answered. */
export const MAX_LINES_BYTES = 2 * 1024 * 1024

/**
 * The body of a request, as its schema has it: JSON, where an empty one is an empty object, or lines of text.
 * @param type what it must say that it is, so that no page in a browser can have one sent unasked
 * @throws LatchkeyError `invalid_request` with everything that is wrong; `media_type_not_supported`, and as `readBody`
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
  const parsed = schema.safeParse(type === 'lines' ? linesIn(body) : body.length === 0 ? {} : parseJson(body))
  if (parsed.success) return parsed.data
  throw invalidBody(issuesOf(parsed.error))
}

function mustBe(what: string): LatchkeyError {
  return new LatchkeyError('media_type_not_supported', `The body must be ${what}.`)
}

function linesIn(body: Buffer): readonly string[] {
  return body
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
}

/** @throws LatchkeyError `invalid_request` */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw invalidBody([{ path: '', message: 'is not JSON' }])
  }
}

/** `checks.1.productId`: where it is wrong. */
export function issuesOf({ issues }: z.ZodError): readonly Issue[] {
  return issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message }))
}

/** The failure of a request whose body can't be used. */
export function invalidBody(issues: readonly Issue[]): LatchkeyError {
  return new LatchkeyError('invalid_request', 'The body is not valid.', { issues })
}

/** An id in a body. */
export const idText = z
  .string()
  .refine(isUsableId, 'is not an id: 1 to 255 characters, none a control character')
