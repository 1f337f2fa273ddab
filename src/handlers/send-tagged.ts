import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { JSON_TYPE, send, sendJson } from './send.js'

type Headers = Readonly<Record<string, string>>

/**
 * Sends an answer that a caller may keep, if it asks each time whether it still holds: 304 when it does.
 * `state` is the part of `body` that counts for that.
 */
export function sendTagged(res: ServerResponse, body: unknown, state: unknown = body): void {
  unlessHeld(res, tagOf(state), (headers) => sendJson(res, 200, body, headers))
}

/** The same with JSON that is written already, and its tag. */
export function sendTaggedJson(res: ServerResponse, tag: string, text: () => string): void {
  unlessHeld(res, tag, (headers) => send(res, 200, { ...JSON_TYPE, ...headers }, text()))
}

export function tagOf(state: unknown): string {
  return createHash('sha256').update(JSON.stringify(state)).digest('base64url')
}

/** The same with bytes, of which `hash` tells whether they are still those. */
export function sendTaggedBytes(res: ServerResponse, hash: string, bytes: Buffer, headers: Headers): void {
  unlessHeld(res, hash, (tagHeaders) => send(res, 200, { ...headers, ...tagHeaders }, bytes))
}

function unlessHeld(res: ServerResponse, hash: string, sendWhole: (headers: Headers) => void): void {
  const tag = `"${hash}"`
  const headers = { ETag: tag, 'Cache-Control': 'private, no-cache' }
  if (!isHeld(res.req.headers['if-none-match'], tag)) {
    sendWhole(headers)
    return
  }
  res.writeHead(304, headers)
  res.end()
}

/** A proxy that compresses marks a tag as weak (`W/`); for this question the two are the same. */
function isHeld(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const held = ifNoneMatch.split(',').map((candidate) => candidate.trim().replace(/^W\//, ''))
  return held.includes(tag) || held.includes('*')
}
