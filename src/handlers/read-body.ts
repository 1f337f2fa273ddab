import type { IncomingMessage } from 'node:http'
import { LatchkeyError } from '../errors.js'

/** Far above any event seen, far below what many senders at once could fill the memory with. */
export const MAX_BODY_BYTES = 1024 * 1024

/**
 * Collects the exact bytes of a body.
 *
 * @throws LatchkeyError `encoding_not_supported` if the body is compressed: the signature covers what
 * was sent, and nothing here unpacks; `body_too_large`, by the announced length or while reading;
 * `body_incomplete` if the sender went away.
 */
export async function readBody(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (encoding !== '' && encoding !== 'identity') {
    throw new LatchkeyError('encoding_not_supported', 'The body must be sent as it was signed, uncompressed.')
  }
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)
  return collect(req, maxBytes)
}

function collect(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0

    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size <= maxBytes) chunks.push(chunk)
      else settle(() => reject(tooLarge(maxBytes)))
    }
    const onEnd = () => settle(() => resolve(Buffer.concat(chunks, size)))
    const onClose = () =>
      settle(() => reject(new LatchkeyError('body_incomplete', 'The body ended before its time.')))

    function settle(outcome: () => void) {
      req.off('data', onData).off('end', onEnd).off('close', onClose)
      outcome()
    }
    req.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}

function tooLarge(maxBytes: number): LatchkeyError {
  return new LatchkeyError('body_too_large', `The body is over ${maxBytes} bytes.`)
}
