/*
 * One request over HTTP, and its answer. By Node's own client: with `fetch`, reading a thousand pages took 40 MB more
 * memory.
 */

import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { createGunzip } from 'node:zlib'

/** A hundred payments with long timelines have half a megabyte. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024

export interface Sent {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** Ends the exchange, whatever it waits for. */
  readonly signal: AbortSignal
  /** What the body is read into if it fits. */
  readonly memory: Buffer
}

/** A redirect is an answer like others: nothing is sent elsewhere. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** From the beginning of its memory. Null: too large. */
  readonly body: Buffer | null
}

/** Rejects with an error of the network or of the signal, which may hold what was sent. */
export function exchange(url: string, given: Sent): Promise<Answer> {
  const { method, headers, body, signal, memory } = given
  return new Promise((resolve, reject) => {
    const request = url.startsWith('https:') ? requestHttps : requestHttp
    const sent = request(url, { method, signal, headers: { ...headers, 'accept-encoding': 'gzip' } })
    sent.on('error', (error) => {
      // The service had closed the idle connection that was to carry this; the next attempt opens another, or fails for
      // a reason of its own.
      const wasClosed = sent.reusedSocket && 'code' in error && error.code === 'ECONNRESET' && !signal.aborted
      if (wasClosed) resolve(exchange(url, given))
      else reject(error)
    })
    sent.on('response', (response) => {
      const { statusCode: status = 0, headers: answered } = response
      readBody(response, memory).then((read) => resolve({ status, headers: answered, body: read }), reject)
    })
    sent.end(body)
  })
}

async function readBody(response: IncomingMessage, memory: Buffer): Promise<Buffer | null> {
  const { 'content-length': said, 'content-encoding': encoding } = response.headers
  const isTooLarge = (bytes: number) => bytes > MAX_BODY_BYTES
  if (isTooLarge(Number(said))) {
    response.destroy()
    return null
  }
  let read = memory
  let length = 0
  for await (const chunk of encoding === 'gzip' ? unpacked(response) : response) {
    const from = length
    length += (chunk as Buffer).length
    // Leaving the loop closes the connection.
    if (isTooLarge(length)) return null
    if (length > read.length) {
      const shorter = read
      read = Buffer.alloc(Math.min(2 * length, MAX_BODY_BYTES))
      read.set(shorter)
    }
    read.set(chunk as Buffer, from)
  }
  return read.subarray(0, length)
}

/** Fails as the connection does. */
function unpacked(response: IncomingMessage): AsyncIterable<unknown> {
  const unzip = createGunzip()
  response.on('error', (error) => unzip.destroy(error)).pipe(unzip)
  return unzip.on('close', () => response.destroy())
}
