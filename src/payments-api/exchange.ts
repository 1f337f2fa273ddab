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
}

/** A redirect is an answer like others: nothing is sent elsewhere. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Null: too large. */
  readonly body: Uint8Array | null
}

/** Rejects with an error of the network or of the signal, which may hold what was sent. */
export function exchange(url: string, { method, headers, body, signal }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = url.startsWith('https:') ? requestHttps : requestHttp
    const sent = request(url, { method, signal, headers: { ...headers, 'accept-encoding': 'gzip' } })
    sent.on('error', (error) => {
      // The service had closed the idle connection that was to carry this; the next attempt opens another, or fails for
      // a reason of its own.
      const wasClosed = sent.reusedSocket && 'code' in error && error.code === 'ECONNRESET' && !signal.aborted
      if (wasClosed) resolve(exchange(url, { method, headers, body, signal }))
      else reject(error)
    })
    sent.on('response', (response) => {
      const { statusCode: status = 0, headers: answered } = response
      readBody(response).then((read) => resolve({ status, headers: answered, body: read }), reject)
    })
    sent.end(body)
  })
}

async function readBody(response: IncomingMessage): Promise<Uint8Array | null> {
  const { 'content-length': said, 'content-encoding': encoding } = response.headers
  const isTooLarge = (bytes: number) => bytes > MAX_BODY_BYTES
  if (isTooLarge(Number(said))) {
    response.destroy()
    return null
  }
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of encoding === 'gzip' ? unpacked(response) : response) {
    length += (chunk as Buffer).length
    // Leaving the loop closes the connection.
    if (isTooLarge(length)) return null
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

/** Fails as the connection does. */
function unpacked(response: IncomingMessage): AsyncIterable<unknown> {
  const unzip = createGunzip()
  response.on('error', (error) => unzip.destroy(error)).pipe(unzip)
  return unzip.on('close', () => response.destroy())
}
